-- Nobody puts dead letters away, and a batch has no pace.

DROP TABLE batch_pace;

DROP INDEX jobs_dead;

ALTER TABLE jobs DROP COLUMN discarded_at;
