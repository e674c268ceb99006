-- What these jobs hold: for as long as they live, until a release, or by these epochs.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
SELECT i.job, i.id, i.pool, i.name, i.value, i.scope
FROM json_to_recordset(CAST(:rows AS json)) AS t(job bigint, epoch integer)
JOIN jobs j ON j.id = t.job
JOIN pool_items i ON i.job = t.job
WHERE i.scope = 'release' OR i.scope = 'job' AND i.generation = j.generation
   OR i.scope = 'attempt' AND i.epoch = t.epoch
ORDER BY i.id;
