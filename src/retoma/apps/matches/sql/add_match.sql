-- A match that is over; one that is there stays as it is, and no row comes back.
INSERT INTO partidas (league, season, round, home, away, status, kickoff, stadium, home_score, away_score,
                      lineups, url, stored_by, stored_at)
VALUES (:league, :season, :round, :home, :away, :status, :kickoff, :stadium, :home_score, :away_score,
        :lineups, :url, :actor, (SELECT clock()))
ON CONFLICT (league, season, round, home, away) DO NOTHING
RETURNING id;
