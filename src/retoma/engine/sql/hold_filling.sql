-- Renew the lease of a submission that is still coming in; zero rows: it is no longer ours.
UPDATE fillings SET lease_until = clock_in(:lease)
WHERE id = :filling AND owner = :owner AND batch IS NULL
RETURNING id;
