-- Take a submission that was not accepted from its owner, who can add nothing more; zero rows: not ours.
UPDATE fillings SET owner = :owner, lease_until = clock_in(:lease)
WHERE id = :filling AND batch IS NULL AND (owner = :owner OR lease_until < (SELECT clock()))
RETURNING id;
