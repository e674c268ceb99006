-- A new batch; zero rows: its key is there already.
INSERT INTO batches (name, key, kind, created_at) VALUES (:name, :key, :kind, (SELECT clock()))
ON CONFLICT (key) DO NOTHING
RETURNING id;
