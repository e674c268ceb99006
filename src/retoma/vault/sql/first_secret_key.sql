-- The first key that seals here; whoever comes second changes nothing.
INSERT INTO meta (name, value) VALUES ('secret_key', :key) ON CONFLICT (name) DO NOTHING;
