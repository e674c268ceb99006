-- Count a slice to its submission.
UPDATE fillings SET jobs = jobs + :jobs WHERE id = :filling;
