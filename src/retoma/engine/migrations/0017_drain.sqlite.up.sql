-- Somebody wants a runner to leave once its jobs have ended; it hears of it with its next beat.

ALTER TABLE runners ADD COLUMN drain_at integer;
