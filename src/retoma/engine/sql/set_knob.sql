-- Somebody sets a knob, for all processes, over its default.
INSERT INTO knobs (name, value, changed_at, changed_by)
VALUES (:name, :value, (SELECT clock()), :actor)
ON CONFLICT (name) DO UPDATE
SET value = excluded.value, changed_at = excluded.changed_at, changed_by = excluded.changed_by;
