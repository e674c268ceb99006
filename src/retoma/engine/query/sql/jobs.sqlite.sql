-- name: jobs_by_id
-- The jobs of these ids, newest first.
-- Twin: sets of rows arrive by json_each here, by json_array_elements_text there.
SELECT id, kind, version, queue, batch, key, generation, state, reason, code, priority, run_at,
       turn IS NOT NULL AS due, aside, epoch, runner, failures, lost, checkpoint, progress, note, progress_at,
       cancel_at, correlation, payload, result, created_at, started_at, ended_at, discarded_at
FROM jobs WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY id DESC;
