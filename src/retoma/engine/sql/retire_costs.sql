-- Delete what days and months came to that nobody can ask for any more; what all came to stays.
DELETE FROM costs
WHERE scope IN ('all', 'application', 'provider') AND period > '' AND period < :costs_before
RETURNING period;
