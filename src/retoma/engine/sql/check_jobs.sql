-- A page of jobs, in the order of their ids, for the checker; payloads only where somebody compares them.
SELECT id, kind, batch, generation, fresh_from, reason, epoch, seq, failures, state, turn, run_at,
       runner, ended_at, CASE WHEN CAST(:whole AS integer) = 1 THEN payload END
FROM jobs
WHERE id > :after
ORDER BY id LIMIT :page;
