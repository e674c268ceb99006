-- When this claim of a job was last seen to stand still.
SELECT max(at) FROM events WHERE job = :job AND epoch = :epoch AND type = 'stalled';
