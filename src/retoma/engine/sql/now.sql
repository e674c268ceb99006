-- The time by which everything is measured.
SELECT (SELECT clock());
