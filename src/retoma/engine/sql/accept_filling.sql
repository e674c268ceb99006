-- All jobs of a submission have come in: from now on they are jobs of this batch.
UPDATE fillings SET batch = :batch, lease_until = clock_in(:lease) WHERE id = :filling;
