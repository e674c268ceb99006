-- How much is left to do (§6.7), and whether the orchestrator is to do it.
SELECT o.wish, o.changed_by,
       (SELECT count(*) FROM ads_missions WHERE status = 'queued'),
       (SELECT count(*) FROM ads_missions WHERE status = 'running'),
       (SELECT count(*) FROM ads_sessions WHERE ended_at IS NULL)
FROM ads_orchestrator o;
