-- Forget missions, workers, proxies, writers, sessions and their logs.
DELETE FROM pool_items WHERE pool IN ('ads.proxies', 'ads.sessions');

DELETE FROM pools WHERE name IN ('ads.proxies', 'ads.sessions');

DROP TRIGGER ads_follow ON jobs;

DROP TRIGGER ads_unpark ON jobs;

DROP TRIGGER ads_retry ON jobs;

DROP VIEW mission_logs;

DROP VIEW writers;

DROP VIEW proxies;

DROP VIEW workers;

DROP VIEW missions;

DROP TABLE ads_left_scrapes;

DROP TABLE ads_adopted;

DROP TABLE ads_failed_items;

DROP TABLE ads_orchestrator;

DROP TABLE ads_logs;

DROP TABLE ads_served;

DROP TABLE ads_missions;

DROP TABLE ads_sessions;

DROP TABLE ads_writers;

DROP TABLE ads_proxies;

DROP TABLE ads_workers;

DROP TABLE ads_numbers;

DROP FUNCTION ads_retry_job();

DROP FUNCTION ads_unpark_job();

DROP FUNCTION ads_follow_job();

DROP FUNCTION ads_refuse_write();
