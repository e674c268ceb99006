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
