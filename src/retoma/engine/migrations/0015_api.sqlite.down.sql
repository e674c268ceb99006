-- No answers are kept, and what people did is not found by time.
DROP INDEX events_commands;

DROP INDEX audit_at;

DROP TABLE answers;
