-- The end of the next page of evidence, by its digest; null where there is none.
SELECT max(sha256) FROM (
    SELECT sha256 FROM evidence WHERE sha256 > :after ORDER BY sha256 LIMIT :page) looked_at;
