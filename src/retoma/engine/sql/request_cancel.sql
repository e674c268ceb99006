-- Ask for the end of a running job, once. Its epoch stays: the holder settles it, or its taking back.
UPDATE jobs SET cancel_at = (SELECT clock()), seq = seq + 1
WHERE id = :job AND state = 'running' AND cancel_at IS NULL
RETURNING seq, epoch, runner;
