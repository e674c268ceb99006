-- One of the jobs that pick_others would pick, were nobody holding its row.
SELECT j.id FROM jobs j
WHERE j.batch = :batch AND j.state = :was
  AND j.id >= (SELECT first_job FROM batches WHERE id = :batch)
  AND j.id <= (SELECT last_job FROM batches WHERE id = :batch)
  AND (j.state NOT IN ('waiting', 'running') OR j.cancel_at IS NULL)
  AND (j.code IN (SELECT key FROM json_each(:codes)) OR CAST(:codes AS text) IS NULL)
  AND (SELECT e.at FROM events e WHERE e.job = j.id AND e.seq = j.seq) <= :since
LIMIT 1;
