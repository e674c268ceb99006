-- How many missions there are of each status.
SELECT status, count(*) FROM ads_missions WHERE deleted_at IS NULL GROUP BY status;
