-- How many matches a round has, because a person says so; who says it last is heard.
INSERT INTO match_sizes (league, season, round, matches, why, confirmed_by, confirmed_at)
VALUES (:league, :season, :round, :matches, :why, :actor, (SELECT clock()))
ON CONFLICT (league, season, round) DO UPDATE SET matches = excluded.matches, why = excluded.why,
    confirmed_by = excluded.confirmed_by, confirmed_at = excluded.confirmed_at;
