-- How many pages of dead tasks and discoveries of the last runs were kept, to be read again.
SELECT (SELECT count(*) FROM match_runs r JOIN match_tasks t ON t.run = r.id
        JOIN jobs j ON j.id = t.job AND j.state = 'dead'
        WHERE r.ended_at IS NULL AND t.partida IS NULL AND t.snapshot IS NOT NULL
          AND (CAST(:code AS text) IS NULL OR j.code = :code)
          AND (CAST(:league AS text) IS NULL OR r.league = :league)
          AND (CAST(:run AS bigint) IS NULL OR r.id = :run)
          AND (CAST(:task AS bigint) IS NULL OR t.id = :task))
     + (SELECT count(*) FROM match_runs r JOIN jobs j ON j.id = r.discovery AND j.state = 'dead'
        WHERE r.ended_at IS NULL AND r.snapshot IS NOT NULL AND CAST(:task AS bigint) IS NULL
          AND (CAST(:code AS text) IS NULL OR j.code = :code)
          AND (CAST(:league AS text) IS NULL OR r.league = :league)
          AND (CAST(:run AS bigint) IS NULL OR r.id = :run));
