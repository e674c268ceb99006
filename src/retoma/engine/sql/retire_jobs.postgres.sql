-- Delete ended jobs whole, and tally that they went; their events stay, and so no epoch is told twice.
-- Twin: one statement here, several there.
WITH old AS MATERIALIZED (
    SELECT CAST(job AS bigint) AS id FROM json_array_elements_text(CAST(:jobs AS json)) AS j(job)
), retired AS (
    DELETE FROM jobs j USING old
    WHERE j.id = old.id AND j.state IN ('done', 'skipped', 'dead', 'canceled')
    RETURNING j.id, j.batch, j.kind, j.state, j.code
), no_steps AS (
    DELETE FROM steps s USING old WHERE s.job = old.id
), no_evidence AS (
    DELETE FROM job_evidence e USING old WHERE e.job = old.id
), tallied AS (
    INSERT INTO tallies (batch, kind, from_state, to_state, code, minute, n)
    SELECT batch, kind, state, 'retired', CASE WHEN state = 'dead' THEN code END,
           date_trunc('minute', (SELECT clock())), count(*)
    FROM retired GROUP BY batch, kind, state, CASE WHEN state = 'dead' THEN code END
)
SELECT id FROM retired;
