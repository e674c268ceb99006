-- Done jobs have no index of their own.
DROP INDEX jobs_done;
