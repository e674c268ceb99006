-- Give things that nobody holds to jobs; or leave a job one it holds, for longer.
-- Twin: sets arrive by json_to_recordset there, by json_each here.
-- The runner's right to each job and its epoch was checked in this transaction. What would outlive its
-- job is not given to one that is to be canceled: nobody would be left to let go of it.
UPDATE pool_items AS i SET job = o.value ->> 'job', epoch = o.value ->> 'epoch',
    generation = o.value ->> 'generation', scope = o.value ->> 'scope',
    uses = i.uses + CASE WHEN i.job IS NULL THEN 1 ELSE 0 END,
    used_at = CASE WHEN i.job IS NULL THEN (SELECT clock()) ELSE i.used_at END,
    last_job = o.value ->> 'job'
FROM json_each(:rows) o
WHERE i.id = o.value ->> 'item'
  AND (i.job IS NULL OR i.job = o.value ->> 'job' AND i.epoch = o.value ->> 'epoch')
  AND (i.job IS NOT NULL OR o.value ->> 'scope' <> 'release'
       OR (SELECT cancel_at FROM jobs WHERE id = o.value ->> 'job') IS NULL)
RETURNING id;
