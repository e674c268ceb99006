-- The run of a round that was begun last, and whether something of it is open.
SELECT v.id, v.open FROM scrape_jobs v
WHERE v.id = (SELECT r.id FROM match_runs r
              WHERE r.league = :league AND r.season = :season AND r.round = :round
                AND r.ended_at IS NULL);
