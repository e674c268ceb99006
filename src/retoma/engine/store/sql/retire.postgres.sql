-- name: hold_old_jobs
-- Those of these jobs that are still to go; nobody moves them before this transaction ends.
-- Twin: rows are locked here; there nobody else writes meanwhile.
SELECT id FROM jobs
WHERE id = ANY(ARRAY(SELECT CAST(job AS bigint)
                     FROM json_array_elements_text(CAST(:jobs AS json)) AS j(job)))
  AND (state IN ('done', 'skipped', 'canceled') AND ended_at < :done_before
       OR state = 'dead' AND (ended_at < :dead_before OR discarded_at < :done_before))
ORDER BY id FOR UPDATE SKIP LOCKED;

-- name: may_retire
-- Whether this role may delete what is old.
-- Twin: roles are asked about here; there every process may.
SELECT has_table_privilege('retoma.jobs', 'DELETE')
   AND has_function_privilege('retoma.retire_audit(bigint, timestamptz)', 'EXECUTE');

-- name: retire_audit
-- Delete the oldest lines of the audit log, a bite at a time.
-- Twin: a function of the owner deletes here, for a role that may not; a statement there.
SELECT * FROM retoma.retire_audit(:bite, :events_before);

-- name: retire_batches
-- Delete batches and their ledgers; the ledger of all batches together keeps its totals.
-- Twin: sets of rows arrive by json_array_elements_text here, by json_each there.
DELETE FROM counts WHERE batch IN (
    SELECT CAST(batch AS bigint) FROM json_array_elements_text(CAST(:batches AS json)) AS b(batch));

DELETE FROM batch_pace WHERE batch IN (
    SELECT CAST(batch AS bigint) FROM json_array_elements_text(CAST(:batches AS json)) AS b(batch));

DELETE FROM costs WHERE scope = 'batch' AND name IN (
    SELECT json_array_elements_text(CAST(:batches AS json)));

DELETE FROM budgets WHERE scope = 'batch' AND name IN (
    SELECT json_array_elements_text(CAST(:batches AS json)));

DELETE FROM batches WHERE id IN (
    SELECT CAST(batch AS bigint) FROM json_array_elements_text(CAST(:batches AS json)) AS b(batch))
RETURNING id;

-- name: retire_events
-- Delete all events of each of these jobs that is no more, if the last of them is old enough.
-- Twin: a function of the owner deletes here, for a role that may not; a statement there.
SELECT * FROM retoma.retire_events(CAST(:jobs AS json), :events_before);

-- name: retire_jobs
-- Delete ended jobs whole, and tally that they went; their events stay, and so no epoch is told twice.
-- Twin: one statement here, several there.
-- = ANY(ARRAY(…)) and no join: planned while a table is still empty, a join would read all of it.
WITH old AS MATERIALIZED (
    SELECT CAST(job AS bigint) AS id FROM json_array_elements_text(CAST(:jobs AS json)) AS j(job)
), retired AS (
    DELETE FROM jobs
    WHERE id = ANY(ARRAY(SELECT id FROM old))
      AND state IN ('done', 'skipped', 'dead', 'canceled')
    RETURNING id, batch, kind, state, code
), no_steps AS (
    DELETE FROM steps WHERE job = ANY(ARRAY(SELECT id FROM old))
), no_costs AS (
    DELETE FROM costs
    WHERE scope = 'job' AND name = ANY(ARRAY(SELECT CAST(id AS text) FROM old))
), no_evidence AS (
    DELETE FROM job_evidence WHERE job = ANY(ARRAY(SELECT id FROM old))
), tallied AS (
    INSERT INTO tallies (batch, kind, from_state, to_state, code, minute, n)
    SELECT batch, kind, state, 'retired', CASE WHEN state = 'dead' THEN code END,
           date_trunc('minute', (SELECT clock())), count(*)
    FROM retired GROUP BY batch, kind, state, CASE WHEN state = 'dead' THEN code END
)
SELECT id FROM retired;
