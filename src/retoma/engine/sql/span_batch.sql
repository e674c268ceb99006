-- Where in the jobs a batch lies: its own are between these two, among others' now and then.
UPDATE batches SET first_job = coalesce(first_job, :first), last_job = :last WHERE id = :batch;
