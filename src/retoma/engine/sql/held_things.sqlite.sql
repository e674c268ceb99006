-- What these jobs hold: for as long as they live, until a release, or by these epochs.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
SELECT i.job, i.id, i.pool, i.name, i.value, i.scope
FROM json_each(:rows) o
CROSS JOIN jobs j ON j.id = o.value ->> 'job'
CROSS JOIN pool_items i ON i.job = j.id
WHERE i.scope = 'release' OR i.scope = 'job' AND i.generation = j.generation
   OR i.scope = 'attempt' AND i.epoch = o.value ->> 'epoch'
ORDER BY i.id;
