-- Every knob that somebody has set.
SELECT name, value, changed_at, changed_by FROM knobs ORDER BY name;
