-- name: get_job
-- One job.
SELECT id, kind, version, queue, batch, key, generation, state, reason, code, priority, run_at,
       turn IS NOT NULL AS due, aside, epoch, runner, failures, lost, checkpoint, progress, note, progress_at,
       cancel_at, correlation, payload, result, created_at, started_at, ended_at, discarded_at
FROM jobs WHERE id = :job;

-- name: job_by_key
-- The job that has a key.
SELECT id FROM jobs WHERE kind = :kind AND key = :key;

-- name: append_event
-- One line of a job's timeline, numbered by the move it tells of.
INSERT INTO events (job, seq, epoch, type, at, actor, details)
VALUES (:job, :seq, :epoch, :type, (SELECT clock()), :actor, :details);

-- name: tell
-- One line of the audit log that belongs to no job.
INSERT INTO audit (at, actor, verb, subject, details)
VALUES ((SELECT clock()), :actor, :verb, :subject, :details);
