-- Delete what is told of minutes long past, kind by kind.
DELETE FROM pace
WHERE kind IN (SELECT kind FROM counts WHERE batch = -1) AND minute < :pace_before
RETURNING minute;
