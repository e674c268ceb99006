-- Forget who refers to what, what schedules submit and the names of duties.

DROP TABLE refers;

ALTER TABLE schedules DROP COLUMN priority;

ALTER TABLE schedules DROP COLUMN queue;

ALTER TABLE schedules DROP COLUMN version;

DELETE FROM duties;
