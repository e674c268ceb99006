-- Back to caps that only the code sets.
DROP INDEX batches_paused;

ALTER TABLE schedules DROP COLUMN limits;

ALTER TABLE limits DROP COLUMN by_hand;
