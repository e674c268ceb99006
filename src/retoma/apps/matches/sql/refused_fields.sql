-- What pages were refused for, by site, code and field: how many wait for a person.
SELECT league, code, field, count(*), min(id) FROM (
    SELECT r.league, j.code, coalesce(t.error ->> 'field', t.error ->> 'selector', t.error ->> 'path', '') AS field, t.id
    FROM jobs j JOIN match_tasks t ON t.job = j.id JOIN match_runs r ON r.id = t.run
    WHERE j.state = 'dead' AND j.kind = 'matches.match' AND r.ended_at IS NULL AND t.partida IS NULL
      AND j.code IN ('LAYOUT_CHANGED', 'SCHEMA_INVALID', 'ROUND_SHORT')
    UNION ALL
    SELECT r.league, j.code, coalesce(r.error ->> 'field', r.error ->> 'selector', r.error ->> 'path', ''), r.id
    FROM jobs j JOIN match_runs r ON r.discovery = j.id
    WHERE j.state = 'dead' AND j.kind = 'matches.discovery' AND r.ended_at IS NULL
      AND j.code IN ('LAYOUT_CHANGED', 'SCHEMA_INVALID', 'ROUND_SHORT')) refused
GROUP BY league, code, field ORDER BY league, code, field LIMIT :n;
