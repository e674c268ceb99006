-- The newest claims of one job and how each ended.
SELECT epoch, runner, claimed_at, ended_at, ended FROM attempts
WHERE job = :job ORDER BY epoch DESC
LIMIT :limit;
