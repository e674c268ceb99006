-- Last runs whose discovery is dead, and whose page was kept, to be read again.
SELECT r.id, r.league, r.season, r.round, r.snapshot, r.discovery, r.error
FROM match_runs r JOIN jobs j ON j.id = r.discovery AND j.state = 'dead'
WHERE r.ended_at IS NULL AND r.snapshot IS NOT NULL AND r.id > :after
  AND (CAST(:code AS text) IS NULL OR j.code = :code)
  AND (CAST(:league AS text) IS NULL OR r.league = :league)
  AND (CAST(:run AS bigint) IS NULL OR r.id = :run)
ORDER BY r.id LIMIT :n;
