-- Put a dead letter away, once. Compare and set on its state; its epoch stays, and so does all else.
UPDATE jobs SET discarded_at = (SELECT clock()), seq = seq + 1
WHERE id = :job AND state = 'dead' AND discarded_at IS NULL
RETURNING seq;
