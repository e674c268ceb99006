-- A restored database goes on as another: what was told of the one before is no place in it.
INSERT INTO meta (name, value) VALUES ('incarnation', :id)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
