-- Hints go: they are told again.
DROP TABLE hints;
