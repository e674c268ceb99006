-- This tick is ours to submit; zero rows: it has been.
INSERT INTO ticks (schedule, at) VALUES (:schedule, :at)
ON CONFLICT (schedule, at) DO NOTHING
RETURNING at;
