-- Nothing but batches and schedules can be paused: whatever stood paused goes on.
DELETE FROM meta WHERE name = 'pauses';

DROP TABLE pauses;

DROP TABLE kinds;
