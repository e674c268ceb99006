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
