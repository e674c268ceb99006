-- Free those of these things whose hold is over, as a statement sees it that begins under their locks.
-- Twin: sets arrive by json_array_elements here, by json_each there.
UPDATE pool_items AS i SET job = NULL, epoch = NULL, generation = NULL, scope = NULL
WHERE i.id = ANY(ARRAY(
    SELECT CAST(m.id AS bigint) FROM json_array_elements_text(CAST(:items AS json)) AS m(id)))
  AND (i.scope = 'attempt' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
       OR i.scope = 'job' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
             AND j.state IN ('waiting', 'running', 'parked')))
RETURNING i.id, i.name, i.value, i.last_job, i.used_at;
