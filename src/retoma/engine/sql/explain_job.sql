-- What explains a job beside its row: its place in line, its deadline, its batch, and what time it is.
SELECT j.turn, j.deadline, j.limit_key, b.name, b.paused_at, (SELECT clock())
FROM jobs j LEFT JOIN batches b ON b.id = j.batch
WHERE j.id = :job;
