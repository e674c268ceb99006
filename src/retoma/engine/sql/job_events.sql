-- The timeline of one job.
SELECT seq, epoch, type, at, actor, details FROM events WHERE job = :job ORDER BY seq;
