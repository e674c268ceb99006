-- Runners are found by their instance alone.
DROP INDEX runners_name;

DROP INDEX runners_lease;
