-- Take a mission out of the bank where nobody is at it; its log stays. Nothing comes back where somebody is.
UPDATE ads_missions SET deleted_at = (SELECT clock())
WHERE id = :mission AND deleted_at IS NULL
  AND status IN ('novo', 'completed', 'failed', 'canceled')
RETURNING id;
