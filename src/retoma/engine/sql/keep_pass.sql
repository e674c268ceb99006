-- Keep what a pass of retention has deleted, over what the one before did.
INSERT INTO meta (name, value) VALUES ('retention', :told)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
