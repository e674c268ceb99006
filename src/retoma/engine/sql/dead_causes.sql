-- Why each of these jobs is dead: what its last burial said.
SELECT j.id, j.kind, j.code, j.ended_at,
       (SELECT e.details FROM events e WHERE e.job = j.id AND e.type = 'buried'
        ORDER BY e.seq DESC LIMIT 1)
FROM jobs j
WHERE j.id IN (SELECT CAST(o.key AS bigint) FROM json_each(:ids) o)
ORDER BY j.id DESC;
