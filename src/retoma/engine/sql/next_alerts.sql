-- A stretch of alerts by id, which goes with when they were raised.
SELECT id, since FROM alerts WHERE id > :after ORDER BY id LIMIT :bite;
