-- One line of a job's timeline, numbered by the move it tells of.
INSERT INTO events (job, seq, epoch, type, at, actor, details)
VALUES (:job, :seq, :epoch, :type, (SELECT clock()), :actor, :details);
