-- What a person may do from now on; no row where that is so already.
UPDATE people SET role = :role
WHERE id = :id AND removed_at IS NULL AND role <> :role
RETURNING id;
