-- Begin a session of a worker; of each there is one at a time.
INSERT INTO ads_sessions (worker, began_at) VALUES (:worker, (SELECT clock()))
ON CONFLICT DO NOTHING
RETURNING id;
