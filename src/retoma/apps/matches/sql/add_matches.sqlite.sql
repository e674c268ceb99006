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
