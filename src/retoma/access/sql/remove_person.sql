-- Somebody goes: no row if nobody of that name is here.
UPDATE people SET removed_at = (SELECT clock())
WHERE name = :name AND removed_at IS NULL
RETURNING id;
