-- The job of a quote that was asked for by itself.
UPDATE quotes SET job = :job WHERE id = :quote;
