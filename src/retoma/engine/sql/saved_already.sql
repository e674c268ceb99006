-- Whether a step got into this state under this very epoch, for a runner that never got the answer.
SELECT 1 FROM steps
WHERE job = :job AND name = :name AND version = :version AND key = :key AND epoch = :epoch
  AND state = :state;
