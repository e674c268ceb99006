-- Duties by name, what a schedule submits, and who refers to jobs and batches.

INSERT INTO duties (name) VALUES ('fold'), ('retention'), ('schedule');

-- Whoever ticks need not know the kind.
ALTER TABLE schedules
    ADD COLUMN version integer NOT NULL DEFAULT 1,
    ADD COLUMN queue text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN priority integer NOT NULL DEFAULT 0;

-- Said once by an application, heeded by whichever runner does the retention.
CREATE TABLE refers (
    table_name   text COLLATE "C" NOT NULL,
    column_name  text COLLATE "C" NOT NULL,
    what         text COLLATE "C" NOT NULL CHECK (what IN ('job', 'batch')),
    PRIMARY KEY (table_name, column_name)
);
