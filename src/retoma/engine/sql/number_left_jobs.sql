-- Number the next event of every job a lost runner has left, under the epoch it still has.
UPDATE jobs SET seq = seq + 1
WHERE runner = :boot AND state = 'running'
  AND (SELECT state FROM runners WHERE boot = :boot) = 'lost'
RETURNING id, epoch, seq;
