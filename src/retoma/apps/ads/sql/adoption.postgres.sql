-- name: adopt_ids
-- Remember what was taken over; those that were not before.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO ads_adopted (source, sort, old, new)
SELECT :source, :sort, t.old, t.new
FROM json_to_recordset(CAST(:rows AS json)) AS t(old text, new text)
ON CONFLICT DO NOTHING
RETURNING old;

-- name: adopt_logs
-- Lines of another database's log, in its own time.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO ads_logs (mission, event, details, at)
SELECT t.mission, t.event, t.details, coalesce(t.at, (SELECT clock()))
FROM json_to_recordset(CAST(:rows AS json)) AS t(mission text, event text, details json, at timestamptz);

-- name: adopt_missions
-- Missions of another database, with all they have been through.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO ads_missions (id, date_start, date_end, media_type, languages, status, checkpoint, generation, worker_id,
    worker_job_id, worker_data_url, proxy_used, writer_job_id, ads_count, error_code, error_message,
    scrape_retries, created_by, created_at, queued_at,
    started_at, finished_at)
SELECT id, date_start, date_end, media_type, languages, status, checkpoint, generation, worker_id,
    worker_job_id, worker_data_url, proxy_used, writer_job_id, ads_count, error_code, error_message,
    scrape_retries, :actor, coalesce(created_at, (SELECT clock())), queued_at,
    started_at, CASE WHEN ended = 1 THEN (SELECT clock()) ELSE finished_at END
FROM json_to_recordset(CAST(:rows AS json)) AS t(id text, date_start date, date_end date,
    media_type text, languages json, status text, checkpoint text, generation integer,
    worker_id text, worker_job_id text, worker_data_url text, proxy_used text, writer_job_id text,
    ads_count integer, error_code text, error_message text, scrape_retries integer,
    created_at timestamptz, queued_at timestamptz, started_at timestamptz, finished_at timestamptz,
    ended integer);
