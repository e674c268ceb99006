-- name: add_events
-- What happened in matches, in its order.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO partida_eventos (partida, n, minute, added, side, kind, player, other)
SELECT t.partida, t.n, t.minute, t.added, t.side, t.kind, t.player, t.other
FROM json_to_recordset(CAST(:rows AS json))
    AS t(partida bigint, n integer, minute integer, added integer, side text, kind text, player text, other text);

-- name: add_matches
-- Matches that are over; those that are there stay as they are. Rows come back of the new ones.
-- Twin: sets arrive by json_to_recordset here, by json_each there; and nobody waits for another in a circle.
INSERT INTO partidas (league, season, round, home, away, status, kickoff, stadium, home_score, away_score,
                      lineups, url, stored_by, stored_at, walkover)
SELECT t.league, t.season, t.round, t.home, t.away, t.status, t.kickoff, t.stadium, t.home_score, t.away_score,
       CAST(t.lineups AS json), t.url, t.actor, (SELECT clock()), t.walkover
FROM json_to_recordset(CAST(:rows AS json))
    AS t(league text, season integer, round integer, home text, away text, status text, kickoff timestamptz,
         stadium text, home_score integer, away_score integer, lineups text, url text, actor text,
         walkover integer)
ORDER BY t.league, t.season, t.round, t.home, t.away
ON CONFLICT (league, season, round, home, away) DO NOTHING
RETURNING id, league, season, round, home, away;

-- name: add_statistics
-- What was counted in matches, for both sides.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO partida_estatisticas (partida, name, home, away)
SELECT t.partida, t.name, t.home, t.away
FROM json_to_recordset(CAST(:rows AS json)) AS t(partida bigint, name text, home integer, away integer);

-- name: change_match
-- What is told of a stored match now, in place of what was. Zero rows: somebody was quicker.
-- Twin: line-ups are json here, text there.
UPDATE partidas SET kickoff = :kickoff, stadium = :stadium, home_score = :home_score,
    away_score = :away_score, lineups = CAST(:lineups AS json), walkover = :walkover, stored_by = :actor,
    stored_at = (SELECT clock()), revision = revision + 1
WHERE id = :partida AND revision = :revision
RETURNING revision;

-- name: put_teams
-- Who plays, by the key and the name of our own.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
INSERT INTO times (league, key, name)
SELECT CAST(:league AS text), t.key, t.name
FROM json_to_recordset(CAST(:rows AS json)) AS t(key text, name text)
ORDER BY t.key
ON CONFLICT (league, key) DO NOTHING;
