-- Secrets sealed with another key than this one: some of them, in the order of their places.
SELECT owner, field, row, ref FROM secrets
WHERE key IS NOT NULL AND key <> :key AND (owner, field, row) > (:owner, :field, :row)
ORDER BY owner, field, row LIMIT :bite;
