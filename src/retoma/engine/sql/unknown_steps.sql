-- What a job has begun, or has at work elsewhere, and nobody has seen end; the latest first.
SELECT name, version, key, state, value FROM steps
WHERE job = :job AND (state = 'begun'
    OR state = 'saved' AND name >= 'remote:' AND name < 'remote;')
ORDER BY begun_at DESC;
