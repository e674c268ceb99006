-- The missions that were looked for, all of them, the oldest first; one more than may be meant at once.
SELECT id FROM ads_missions
WHERE deleted_at IS NULL
  AND (CAST(:status AS text) IS NULL OR status = :status)
  AND (CAST(:media_type AS text) IS NULL OR media_type = :media_type)
  AND (CAST(:language AS text) IS NULL OR CAST(languages AS text) LIKE '%"' || :language || '"%')
  AND (CAST(:since AS text) IS NULL OR CAST(date_end AS text) >= :since)
  AND (CAST(:until AS text) IS NULL OR CAST(date_start AS text) <= :until)
  AND (CAST(:code AS text) IS NULL OR error_code = :code)
ORDER BY id LIMIT :n;
