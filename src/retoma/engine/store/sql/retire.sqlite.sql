-- name: hold_old_jobs
-- Those of these jobs that are still to go; nobody moves them before this transaction ends.
-- Twin: rows are locked there; here nobody else writes meanwhile.
SELECT id FROM jobs
WHERE id IN (SELECT value FROM json_each(:jobs))
  AND (state IN ('done', 'skipped', 'canceled') AND ended_at < :done_before
       OR state = 'dead' AND (ended_at < :dead_before OR discarded_at < :done_before))
ORDER BY id;

-- name: may_retire
-- Whether this role may delete what is old.
-- Twin: every process may here; there roles are asked about.
SELECT 1;

-- name: retire_audit
-- Delete the oldest lines of the audit log, a bite at a time.
-- Twin: a statement here; there a function of the owner, for a role that may not delete.
DELETE FROM audit
WHERE id IN (SELECT id FROM audit ORDER BY id LIMIT :bite) AND at < :events_before
RETURNING id;

-- name: retire_batches
-- Delete batches and their ledgers; the ledger of all batches together keeps its totals.
-- Twin: sets of rows arrive by json_array_elements_text there, by json_each here.
DELETE FROM counts WHERE batch IN (SELECT value FROM json_each(:batches));

DELETE FROM batch_pace WHERE batch IN (SELECT value FROM json_each(:batches));

DELETE FROM costs
WHERE scope = 'batch' AND name IN (SELECT CAST(value AS text) FROM json_each(:batches));

DELETE FROM budgets
WHERE scope = 'batch' AND name IN (SELECT CAST(value AS text) FROM json_each(:batches));

DELETE FROM batches WHERE id IN (SELECT value FROM json_each(:batches))
RETURNING id;

-- name: retire_events
-- Delete all events of each of these jobs that is no more, if the last of them is old enough.
-- Twin: a statement here; there a function of the owner, for a role that may not delete.
DELETE FROM events
WHERE job IN (
    SELECT o.value FROM json_each(:jobs) o
    WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = o.value)
      AND (SELECT max(at) FROM events WHERE job = o.value) < :events_before)
RETURNING job;

-- name: retire_jobs
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
