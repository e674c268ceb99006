-- What a story is told of its task, and where its match is stored, if it is.
SELECT t.id, t.run, t.match_key, t.url, t.kickoff, t.job, r.league, r.season, r.round, t.partida, p.id
FROM match_tasks t JOIN match_runs r ON r.id = t.run
LEFT JOIN partidas p ON p.league = r.league AND p.season = r.season AND p.round = r.round
    AND p.home = t.home AND p.away = t.away
WHERE t.id = :task;
