-- Begin a run of a round; where one is under way nothing is written.
INSERT INTO match_runs (league, season, round, created_by, created_at, correlation)
VALUES (:league, :season, :round, :actor, (SELECT clock()), :correlation)
ON CONFLICT (league, season, round) WHERE ended_at IS NULL DO NOTHING
RETURNING id;
