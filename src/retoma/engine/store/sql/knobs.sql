-- name: get_knob
-- What somebody has set one knob to; zero rows: nobody has.
SELECT value, changed_at, changed_by FROM knobs WHERE name = :name;

-- name: list_knobs
-- Every knob that somebody has set.
SELECT name, value, changed_at, changed_by FROM knobs ORDER BY name;

-- name: set_knob
-- Somebody sets a knob, for all processes, over its default.
INSERT INTO knobs (name, value, changed_at, changed_by)
VALUES (:name, :value, (SELECT clock()), :actor)
ON CONFLICT (name) DO UPDATE
SET value = excluded.value, changed_at = excluded.changed_at, changed_by = excluded.changed_by;

-- name: unset_knob
-- The default of a knob holds again. Zero rows: nobody had set it.
DELETE FROM knobs WHERE name = :name;
