-- Nobody counts what ever happened.
DROP TABLE runner_totals;

DROP TABLE totals;

ALTER TABLE tallies DROP COLUMN event;
