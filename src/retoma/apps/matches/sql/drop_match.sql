-- A match of a round never was, because a person says so.
INSERT INTO match_dropped (league, season, round, match_key, why, dropped_by, dropped_at)
VALUES (:league, :season, :round, :match_key, :why, :actor, (SELECT clock()))
ON CONFLICT (league, season, round, match_key) DO NOTHING
RETURNING match_key;
