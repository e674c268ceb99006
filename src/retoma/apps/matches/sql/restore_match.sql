-- A match that was dropped is one of its round after all.
DELETE FROM match_dropped
WHERE league = :league AND season = :season AND round = :round AND match_key = :match_key
RETURNING match_key;
