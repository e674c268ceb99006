-- Forget what the rules remembered.
DROP TRIGGER ads_unpark;

DROP TABLE ads_failed_items;

ALTER TABLE ads_sessions DROP COLUMN ended_for;

ALTER TABLE ads_sessions DROP COLUMN waits_since;

ALTER TABLE ads_missions DROP COLUMN resends;

ALTER TABLE ads_missions DROP COLUMN parks;
