-- Begin a submission in slices; zero rows: its key is being submitted already.
INSERT INTO fillings (key, owner, lease_until, submission)
VALUES (:key, :owner, clock_in(:lease), :submission)
ON CONFLICT (key) DO NOTHING
RETURNING id;
