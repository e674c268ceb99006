-- Free those of these things whose hold is over, as a statement sees it that begins under their locks.
-- Twin: sets arrive by json_array_elements there, by json_each here.
UPDATE pool_items AS i SET job = NULL, epoch = NULL, generation = NULL, scope = NULL
WHERE i.id IN (SELECT value FROM json_each(:items))
  AND (i.scope = 'attempt' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.epoch = i.epoch AND j.state = 'running')
       OR i.scope = 'job' AND NOT EXISTS (
           SELECT 1 FROM jobs j WHERE j.id = i.job AND j.generation = i.generation
             AND j.state IN ('waiting', 'running', 'parked')))
RETURNING id, name, value, last_job, used_at;
