-- Lock an accepted submission and renew its lease; zero rows: all its jobs have been moved.
UPDATE fillings SET lease_until = clock_in(:lease) WHERE id = :filling AND batch IS NOT NULL
RETURNING submission, batch;
