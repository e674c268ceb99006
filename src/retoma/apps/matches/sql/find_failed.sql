-- What has failed of the last runs of rounds and has no match: jobs, and their runs.
-- A task whose match a person has deleted is one of them.
SELECT r.id, t.job FROM match_runs r JOIN match_tasks t ON t.run = r.id
JOIN jobs j ON j.id = t.job AND (j.state IN ('dead', 'done')
    OR j.state IN ('skipped', 'canceled') AND coalesce(t.error ->> 'code', '') = 'DELETED')
WHERE r.ended_at IS NULL AND t.partida IS NULL
  AND (CAST(:run AS bigint) IS NULL OR r.id = :run)
  AND (CAST(:league AS text) IS NULL OR r.league = :league)
  AND (CAST(:season AS integer) IS NULL OR r.season = :season)
  AND (CAST(:round AS integer) IS NULL OR r.round = :round)
  AND NOT EXISTS (SELECT 1 FROM match_dropped x WHERE x.league = r.league AND x.season = r.season
                  AND x.round = r.round AND x.match_key = t.match_key)
UNION
SELECT r.id, r.discovery FROM match_runs r JOIN jobs j ON j.id = r.discovery AND j.state = 'dead'
WHERE r.ended_at IS NULL
  AND (CAST(:run AS bigint) IS NULL OR r.id = :run)
  AND (CAST(:league AS text) IS NULL OR r.league = :league)
  AND (CAST(:season AS integer) IS NULL OR r.season = :season)
  AND (CAST(:round AS integer) IS NULL OR r.round = :round)
ORDER BY 2 LIMIT :n;
