-- Steps are begun or saved, as before.
DELETE FROM steps WHERE state = 'failed';

UPDATE steps SET state = 'saved' WHERE state = 'ended';

ALTER TABLE steps DROP CONSTRAINT steps_state_check;

ALTER TABLE steps ADD CONSTRAINT steps_state_check CHECK (state IN ('begun', 'saved'));
