-- A leader task that some instance can do; nothing changes where it is known.
INSERT INTO duties (name) VALUES (:name) ON CONFLICT (name) DO NOTHING;
