-- name: confirm_size
-- How many matches a round has, because a person says so; who says it last is heard.
INSERT INTO match_sizes (league, season, round, matches, why, confirmed_by, confirmed_at)
VALUES (:league, :season, :round, :matches, :why, :actor, (SELECT clock()))
ON CONFLICT (league, season, round) DO UPDATE SET matches = excluded.matches, why = excluded.why,
    confirmed_by = excluded.confirmed_by, confirmed_at = excluded.confirmed_at;

-- name: drop_match
-- A match of a round never was, because a person says so.
INSERT INTO match_dropped (league, season, round, match_key, why, dropped_by, dropped_at)
VALUES (:league, :season, :round, :match_key, :why, :actor, (SELECT clock()))
ON CONFLICT (league, season, round, match_key) DO NOTHING
RETURNING match_key;

-- name: reopen_run
-- A run that was complete lacks a match again.
UPDATE match_runs SET completed_at = NULL WHERE id = :run;

-- name: resize_run
-- How many matches a run has now that a person has said something of its round.
-- A run that knew none stays so.
UPDATE match_runs SET expected = nullif(max_of.n, 0),
    completed_at = CASE WHEN max_of.n = expected THEN completed_at END
FROM (SELECT CASE WHEN count(*) > CAST(:size AS integer) THEN count(*) ELSE CAST(:size AS integer) END AS n
      FROM match_tasks t JOIN match_runs r ON r.id = t.run
      WHERE t.run = :run
        AND NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                        AND x.round = r.round AND x.match_key = t.match_key)) max_of
WHERE id = :run AND expected IS NOT NULL AND max_of.n > 0
RETURNING expected;

-- name: restore_match
-- A match that was dropped is one of its round after all.
DELETE FROM match_dropped
WHERE league = :league AND season = :season AND round = :round AND match_key = :match_key
RETURNING match_key;

-- name: unlink_tasks
-- The tasks of a match that a person has deleted: they lack it, and say why.
UPDATE match_tasks SET partida = NULL, already = 0, snapshot = NULL, error = :error
WHERE partida = :partida
RETURNING run;
