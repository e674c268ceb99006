-- Nothing of the engine is left.

DROP VIEW attempts;

DROP TABLE ticks;

DROP TABLE schedules;

DROP TABLE duties;

DROP TABLE pace;

DROP TABLE counts;

DROP TABLE tallies;

DROP TABLE limits;

DROP TABLE job_evidence;

DROP TABLE evidence;

DROP TABLE steps;

DROP TABLE audit;

DROP TABLE events;

DROP TABLE jobs;

DROP TABLE runners;

DROP TABLE batches;
