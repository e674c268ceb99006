-- What was not accepted yet goes; whoever submitted it asks again.
DELETE FROM duties WHERE name = 'fill';

DROP TABLE filling_jobs;

DROP TABLE fillings;
