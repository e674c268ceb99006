-- name: add_events
-- What happened in matches, in its order.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO partida_eventos (partida, n, minute, added, side, kind, player, other)
SELECT value ->> 'partida', value ->> 'n', value ->> 'minute', value ->> 'added', value ->> 'side',
       value ->> 'kind', value ->> 'player', value ->> 'other'
FROM json_each(:rows);

-- name: add_matches
-- Matches that are over; those that are there stay as they are. Rows come back of the new ones.
-- Twin: sets arrive by json_to_recordset there, by json_each here; and nobody waits for another in a circle.
INSERT INTO partidas (league, season, round, home, away, status, kickoff, stadium, home_score, away_score,
                      lineups, url, stored_by, stored_at, walkover)
SELECT value ->> 'league', value ->> 'season', value ->> 'round', value ->> 'home', value ->> 'away',
       value ->> 'status', value ->> 'micros', value ->> 'stadium', value ->> 'home_score',
       value ->> 'away_score', value ->> 'lineups', value ->> 'url', value ->> 'actor', (SELECT clock()),
       value ->> 'walkover'
FROM json_each(:rows) WHERE true
ON CONFLICT (league, season, round, home, away) DO NOTHING
RETURNING id, league, season, round, home, away;

-- name: add_statistics
-- What was counted in matches, for both sides.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO partida_estatisticas (partida, name, home, away)
SELECT value ->> 'partida', value ->> 'name', value ->> 'home', value ->> 'away' FROM json_each(:rows);

-- name: change_match
-- What is told of a stored match now, in place of what was. Zero rows: somebody was quicker.
-- Twin: line-ups are json there, text here.
UPDATE partidas SET kickoff = :kickoff, stadium = :stadium, home_score = :home_score,
    away_score = :away_score, lineups = :lineups, walkover = :walkover, stored_by = :actor,
    stored_at = (SELECT clock()), revision = revision + 1
WHERE id = :partida AND revision = :revision
RETURNING revision;

-- name: put_teams
-- Who plays, by the key and the name of our own.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
INSERT INTO times (league, key, name)
SELECT CAST(:league AS text), value ->> 'key', value ->> 'name' FROM json_each(:rows) WHERE true
ON CONFLICT (league, key) DO NOTHING;
