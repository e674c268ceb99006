-- The job of a quote, and its lote.
SELECT job, lote FROM quotes WHERE id = :quote;
