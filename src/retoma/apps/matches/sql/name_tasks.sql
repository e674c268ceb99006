-- The jobs of a batch, each to its task: its payload says of which it is.
UPDATE match_tasks SET job = j.id
FROM jobs j, batches b
WHERE b.id = :batch AND j.id BETWEEN b.first_job AND b.last_job AND j.batch = b.id
  AND match_tasks.id = CAST(j.payload ->> 'task' AS bigint);
