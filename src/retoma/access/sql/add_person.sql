-- A new person, unless somebody of that name is here already: then no row.
INSERT INTO people (name, role, created_at) VALUES (:name, :role, (SELECT clock()))
ON CONFLICT (name) WHERE removed_at IS NULL DO NOTHING
RETURNING id;
