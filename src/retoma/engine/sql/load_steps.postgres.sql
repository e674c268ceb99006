-- What these jobs may read back: the steps of generations they still see.
-- Twin: sets of rows arrive by json_to_recordset here, by json_each there.
-- What a step cost is spared by a job that was stopped, not by one that left its story by itself.
-- The limits limit nothing: see save_steps.
-- The value of a saved step comes along where its job's values are few or small; else its size.
SELECT s.job, s.name, s.version, s.key, s.state,
       CASE WHEN v.unread = 0 THEN s.value END AS value, v.unread,
       CAST(extract(epoch FROM (SELECT clock()))
           - extract(epoch FROM coalesce(s.saved_at, s.begun_at)) AS double precision) AS age,
       CAST(extract(epoch FROM (SELECT clock())) - extract(epoch FROM j.progress_at)
           AS double precision) AS quiet,
       j.cancel_at IS NOT NULL AS canceling, j.progress, j.note,
       CASE WHEN s.cost IS NOT NULL AND EXISTS (
           SELECT 1 FROM events e WHERE e.job = j.id AND e.seq = j.seq - 1
             AND e.type IN ('failed', 'lost', 'released', 'unparked', 'again')) THEN s.cost END AS spared
FROM (SELECT * FROM (SELECT * FROM json_to_recordset(CAST(:rows AS json))
          AS t(job bigint, fresh_from integer) LIMIT (SELECT 1000000)) few LIMIT (SELECT 1000000)) t
JOIN jobs j ON j.id = t.job
JOIN steps s ON s.job = t.job AND s.generation >= t.fresh_from
CROSS JOIN LATERAL (SELECT CASE
    WHEN s.state <> 'saved' OR s.value IS NULL OR substr(s.name, 1, 7) = 'remote:' THEN 0
    WHEN CAST(octet_length(CAST(s.value AS text)) AS bigint) * j.seq <= :inline THEN 0
    ELSE octet_length(CAST(s.value AS text)) END AS unread) v;
