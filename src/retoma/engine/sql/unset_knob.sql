-- The default of a knob holds again. Zero rows: nobody had set it.
DELETE FROM knobs WHERE name = :name;
