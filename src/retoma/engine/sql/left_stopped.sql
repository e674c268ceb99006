-- One of the jobs that pick_stopped would pick, were nobody holding its row.
SELECT j.id FROM jobs j
WHERE j.batch = :batch AND j.state = :was
  AND j.state IN ('parked', 'skipped', 'dead', 'canceled') AND j.discarded_at IS NULL
  AND (j.code IN (SELECT key FROM json_each(:codes)) OR CAST(:codes AS text) IS NULL)
  AND (SELECT e.at FROM events e WHERE e.job = j.id AND e.seq = j.seq) <= :since
LIMIT 1;
