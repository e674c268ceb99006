-- Ask for the end of a job that waits for remote work, once: a runner takes it up to stop that work.
-- Compare and set on its state; its epoch stays.
UPDATE jobs SET cancel_at = (SELECT clock()), seq = seq + 1, turn = NULL, aside = NULL,
    run_at = (SELECT clock())
WHERE id = :job AND state = 'waiting' AND cancel_at IS NULL AND EXISTS (
    SELECT 1 FROM steps s
    WHERE s.job = jobs.id AND s.name >= 'remote:' AND s.name < 'remote;'
      AND s.state IN ('begun', 'saved'))
RETURNING seq, queue;
