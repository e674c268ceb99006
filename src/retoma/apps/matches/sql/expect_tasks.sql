-- How many matches a run has: as many as its tasks. What was added is not stored yet.
UPDATE match_runs SET expected = (SELECT count(*) FROM match_tasks t WHERE t.run = :run),
    batch = coalesce(batch, :batch), not_yet = NULL, error = NULL, snapshot = NULL,
    completed_at = CASE WHEN CAST(:batch AS bigint) IS NULL THEN completed_at END
WHERE id = :run
RETURNING expected;
