-- From now on nothing of it is claimed. Zero rows: it is paused already.
INSERT INTO pauses (scope, name, since, actor, why)
VALUES (:scope, :name, (SELECT clock()), :actor, :why)
ON CONFLICT (scope, name) DO NOTHING
RETURNING name;
