-- name: adopt_ids
-- Remember what was taken over; those that were not before.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO ads_adopted (source, sort, old, new)
SELECT :source, :sort, value ->> 'old', value ->> 'new' FROM json_each(:rows)
WHERE true
ON CONFLICT DO NOTHING
RETURNING old;

-- name: adopt_logs
-- Lines of another database's log, in its own time.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO ads_logs (mission, event, details, at)
SELECT value ->> 'mission', value ->> 'event', value -> 'details',
       coalesce(value ->> 'at', (SELECT clock()))
FROM json_each(:rows);

-- name: adopt_missions
-- Missions of another database, with all they have been through.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO ads_missions (id, date_start, date_end, media_type, languages, status, checkpoint, generation, worker_id,
    worker_job_id, worker_data_url, proxy_used, writer_job_id, ads_count, error_code, error_message,
    scrape_retries, created_by, created_at, queued_at,
    started_at, finished_at)
SELECT value ->> 'id', value ->> 'date_start', value ->> 'date_end', value ->> 'media_type',
       value -> 'languages', value ->> 'status', value ->> 'checkpoint', value ->> 'generation',
       value ->> 'worker_id', value ->> 'worker_job_id', value ->> 'worker_data_url',
       value ->> 'proxy_used', value ->> 'writer_job_id', value ->> 'ads_count',
       value ->> 'error_code', value ->> 'error_message', value ->> 'scrape_retries', :actor,
       coalesce(value ->> 'created_at', (SELECT clock())), value ->> 'queued_at',
       value ->> 'started_at',
       CASE WHEN value ->> 'ended' = 1 THEN (SELECT clock()) ELSE value ->> 'finished_at' END
FROM json_each(:rows);
