-- One job.
SELECT id, kind, version, queue, batch, key, generation, state, reason, code, priority, run_at,
       turn, aside, epoch, runner, failures, lost, checkpoint, progress, note, progress_at,
       cancel_at, correlation, payload, result, created_at, started_at, ended_at, discarded_at
FROM jobs WHERE id = :job;
