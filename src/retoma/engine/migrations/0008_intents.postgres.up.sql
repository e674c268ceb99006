-- Steps may be known to have failed, and remote work to have ended.
ALTER TABLE steps DROP CONSTRAINT steps_state_check;

ALTER TABLE steps ADD CONSTRAINT steps_state_check
    CHECK (state IN ('begun', 'saved', 'failed', 'ended'));
