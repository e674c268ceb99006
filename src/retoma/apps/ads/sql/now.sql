-- What time it is.
SELECT (SELECT clock());
