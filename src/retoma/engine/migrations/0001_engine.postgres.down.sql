-- Nothing of the engine is left.

DROP VIEW attempts;

DROP TABLE ticks, schedules, duties, pace, counts, tallies, limits, job_evidence, evidence, steps,
    audit, events, jobs, runners, batches;

DROP FUNCTION refuse_change_of_events();

DROP FUNCTION clock_in(double precision);

DROP FUNCTION clock();
