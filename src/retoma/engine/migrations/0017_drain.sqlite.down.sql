-- Runners leave only when their own process is told to.

ALTER TABLE runners DROP COLUMN drain_at;
