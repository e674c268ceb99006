-- What stories are told of their tasks, and where each match is stored, if it is.
-- Twin: sets arrive by json_array_elements_text here, by json_each there.
SELECT t.id, t.run, t.match_key, t.url, t.kickoff, t.job, r.league, r.season, r.round, t.partida, p.id
FROM (SELECT CAST(json_array_elements_text(CAST(:tasks AS json)) AS bigint) AS id LIMIT (SELECT 1000)) n
JOIN match_tasks t ON t.id = n.id
JOIN match_runs r ON r.id = t.run
LEFT JOIN partidas p ON p.league = r.league AND p.season = r.season AND p.round = r.round
    AND p.home = t.home AND p.away = t.away;
