-- Nothing of the engine is left.
DELETE FROM meta WHERE name IN ('secret_key', 'pauses');

DROP VIEW attempts;

DROP TABLE filling_jobs;

DROP TABLE fillings;

DROP TABLE pauses;

DROP TABLE kinds;

DROP TABLE runner_kinds;

DROP TABLE knobs;

DROP TABLE alerts;

DROP TABLE runner_totals;

DROP TABLE totals;

DROP TABLE answers;

DROP TABLE secrets;

DROP TABLE sign_in_sessions;

DROP TABLE sign_in_links;

DROP TABLE api_keys;

DROP TABLE people;

DROP TABLE hints;

DROP TABLE reuse;

DROP TABLE budgets;

DROP TABLE exchange;

DROP TABLE prices;

DROP TABLE costs;

DROP TABLE charges;

DROP TABLE breakers;

DROP TABLE rates;

DROP TABLE pool_items;

DROP TABLE pools;

DROP TABLE steps;

DROP TABLE places_left;

DROP TABLE refers;

DROP TABLE batch_pace;

DROP TABLE ticks;

DROP TABLE schedules;

DROP TABLE duties;

DROP TABLE pace;

DROP TABLE counts;

DROP TABLE tallies;

DROP TABLE limits;

DROP TABLE job_evidence;

DROP TABLE evidence;

DROP TABLE audit;

DROP TABLE events;

DROP TABLE jobs;

DROP TABLE runners;

DROP TABLE batches;
