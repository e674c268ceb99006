-- Quotes that were taken over while they waited or were at work, and have no job yet; those of one lote together.
-- Twin: their rows are locked there, so that of two who submit them the second finds none; SQLite has one writer.
SELECT id, was ->> 'batch_request_id', code FROM quotes
WHERE was IS NOT NULL AND was ->> 'adopted_from' = :source AND job IS NULL
  AND was ->> 'status' IN ('PENDING', 'PROCESSING')
ORDER BY 2, id LIMIT :n;
