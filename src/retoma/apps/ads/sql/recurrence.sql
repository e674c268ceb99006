-- name: tick_of
-- Of which tick a job is, or when it was made where it is of none.
SELECT coalesce((SELECT max(t.at) FROM ticks t WHERE t.job = j.id), j.created_at)
FROM jobs j WHERE j.id = :job;
