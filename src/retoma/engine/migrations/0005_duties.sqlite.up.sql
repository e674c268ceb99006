-- Duties by name, what a schedule submits, and who refers to jobs and batches.

INSERT INTO duties (name) VALUES ('fold'), ('retention'), ('schedule');

-- Whoever ticks need not know the kind.
ALTER TABLE schedules ADD COLUMN version integer NOT NULL DEFAULT 1;

ALTER TABLE schedules ADD COLUMN queue text NOT NULL DEFAULT '';

ALTER TABLE schedules ADD COLUMN priority integer NOT NULL DEFAULT 0;

-- Said once by an application, heeded by whichever runner does the retention.
CREATE TABLE refers (
    table_name   text NOT NULL,
    column_name  text NOT NULL,
    what         text NOT NULL CHECK (what IN ('job', 'batch')),
    PRIMARY KEY (table_name, column_name)
) STRICT;
