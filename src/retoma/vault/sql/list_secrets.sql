-- Every secret, without what it is: a page in the order of their places.
SELECT owner, field, row, ref, last4, set_at, set_by FROM secrets
WHERE (owner, field, row) > (:owner, :field, :row)
ORDER BY owner, field, row LIMIT :most;
