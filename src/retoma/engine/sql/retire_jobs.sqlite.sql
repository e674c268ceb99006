-- Delete ended jobs whole, and tally that they went; their events stay, and so no epoch is told twice.
-- Twin: several statements here, one there.
DELETE FROM steps WHERE job IN (SELECT value FROM json_each(:jobs));

DELETE FROM costs
WHERE scope = 'job' AND name IN (SELECT CAST(value AS text) FROM json_each(:jobs));

DELETE FROM job_evidence WHERE job IN (SELECT value FROM json_each(:jobs));

INSERT INTO tallies (batch, kind, from_state, to_state, code, minute, n)
SELECT batch, kind, state, 'retired', CASE WHEN state = 'dead' THEN code END,
       (SELECT clock()) / 60000000 * 60000000, count(*)
FROM jobs
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND state IN ('done', 'skipped', 'dead', 'canceled')
GROUP BY batch, kind, state, CASE WHEN state = 'dead' THEN code END;

DELETE FROM jobs
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND state IN ('done', 'skipped', 'dead', 'canceled')
RETURNING id;
