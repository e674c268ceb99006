-- Give things that nobody holds to jobs; or leave a job one it holds, for longer.
-- Twin: sets arrive by json_to_recordset here, by json_each there.
-- The runner's right to each job and its epoch was checked in this transaction. What would outlive its
-- job is not given to one that is to be canceled: nobody would be left to let go of it.
UPDATE pool_items i SET job = t.job, epoch = t.epoch, generation = t.generation, scope = t.scope,
    uses = i.uses + CASE WHEN i.job IS NULL THEN 1 ELSE 0 END,
    used_at = CASE WHEN i.job IS NULL THEN (SELECT clock()) ELSE i.used_at END, last_job = t.job
FROM json_to_recordset(CAST(:rows AS json)) AS t(item bigint, job bigint, epoch integer,
    generation integer, scope text)
WHERE i.id = t.item AND (i.job IS NULL OR i.job = t.job AND i.epoch = t.epoch)
  AND (i.job IS NOT NULL OR t.scope <> 'release'
       OR (SELECT cancel_at FROM jobs WHERE id = t.job) IS NULL)
RETURNING i.id;
