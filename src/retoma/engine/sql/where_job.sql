-- The queue of a job.
SELECT queue FROM jobs WHERE id = :job;
