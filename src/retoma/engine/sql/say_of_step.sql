-- What a person knows of a step that we lost sight of. Compare and set on the step's state.
UPDATE steps SET state = :state, value = :value, saved_at = (SELECT clock())
WHERE job = :job AND name = :name AND version = :version AND key = :key AND state = :was
RETURNING epoch;
