-- What somebody has set one knob to; zero rows: nobody has.
SELECT value, changed_at, changed_by FROM knobs WHERE name = :name;
