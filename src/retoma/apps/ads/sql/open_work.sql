-- Whether missions wait.
SELECT EXISTS (SELECT 1 FROM ads_missions WHERE status = 'queued');
