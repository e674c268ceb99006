-- Whether a slice has come in already: the answer of its commit may have been lost.
SELECT 1 FROM filling_jobs WHERE filling = :filling AND slice = :slice LIMIT 1;
