-- name: choose_writer
-- The writer that is there, healthy and has least to do, and whether it was away; nothing where there is none.
SELECT w.id, coalesce(b.state, 'closed') <> 'closed'
FROM ads_writers w LEFT JOIN breakers b ON b.name = 'ads.writer.' || w.id
WHERE w.active = TRUE AND w.deleted_at IS NULL
ORDER BY CASE coalesce(b.state, 'closed') WHEN 'closed' THEN 0 ELSE 1 END,
         coalesce(w.last_test_ok, TRUE) DESC,
         (SELECT count(*) FROM ads_missions m WHERE m.writer_id = w.id AND m.status = 'running'
              AND m.checkpoint = 'armazenamento'), w.id
LIMIT 1;

-- name: finish_mission
-- A mission's ads are stored (§3.3). One that was canceled meanwhile stays so, and keeps the counts.
UPDATE ads_missions
SET status = CASE WHEN status = 'running' THEN 'completed' ELSE status END,
    checkpoint = CASE WHEN status = 'running' THEN 'finalizado' ELSE checkpoint END,
    error_code = CASE WHEN status = 'running' THEN NULL ELSE error_code END,
    error_message = CASE WHEN status = 'running' THEN NULL ELSE error_message END,
    success_count = :success, failed_count = :failed,
    finished_at = coalesce(finished_at, (SELECT clock()))
WHERE id = :mission AND storage = :job
RETURNING status, ads_count, queued_at, finished_at;

-- name: forget_failed_items
-- Forget the ads of a mission that could not be stored.
DELETE FROM ads_failed_items WHERE mission = :mission;

-- name: give_writer
-- Which writer stores the ads of a mission; nobody, once what it was sent has failed.
UPDATE ads_missions SET writer_id = :writer, writer_job_id = NULL
WHERE id = :mission AND status = 'running'
RETURNING id;

-- name: keep_counts
-- What a writer stored and refused of a mission, while a person looks at it.
UPDATE ads_missions SET success_count = :success, failed_count = :failed
WHERE id = :mission AND storage = :job;

-- name: list_failed_items
-- The ads of a mission that could not be stored, in their order, a page of them.
SELECT place, data, error FROM ads_failed_items
WHERE mission = :mission AND place > :after ORDER BY place LIMIT :n;

-- name: look_at_storage
-- What a mission's ads are stored with: where they lie, the writer that has them, its turn, whether they are still wanted.
SELECT worker_data_url, writer_id, parks, status = 'running', resends FROM ads_missions
WHERE id = :mission;

-- name: name_write
-- Under what id a writer stores the ads of a mission; nothing comes back where that is known.
UPDATE ads_missions SET writer_job_id = :job_id
WHERE id = :mission AND writer_job_id IS DISTINCT FROM :job_id
RETURNING id;

-- name: resend_mission
-- The ads of a mission go to a writer once more: of one that has ended, and whose ads lie there still.
UPDATE ads_missions
SET status = 'running', checkpoint = 'armazenamento', storage = NULL, writer_id = NULL,
    writer_job_id = NULL, success_count = NULL, failed_count = NULL, error_code = NULL,
    error_message = NULL, writer_retries = 0, resends = resends + 1, finished_at = NULL
WHERE id = :mission AND deleted_at IS NULL AND worker_data_url IS NOT NULL
  AND (status = 'completed' AND failed_count > 0 OR status = 'failed' AND checkpoint = 'armazenamento')
RETURNING resends, generation;

-- name: writer_job
-- Under which id a writer has the ads of a mission.
SELECT writer_job_id FROM ads_missions WHERE id = :mission;
