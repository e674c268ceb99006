-- name: leave_runners
-- Nobody of before lives in a database that was restored: no boot it knows may write to it.
UPDATE runners SET state = 'gone' WHERE state IN ('alive', 'leaving')
RETURNING boot, name;

-- name: name_incarnation
-- A restored database goes on as another: what was told of the one before is no place in it.
INSERT INTO meta (name, value) VALUES ('incarnation', :id)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
