-- One line in the timeline of each job just moved, numbered by its move.
INSERT INTO events (job, seq, epoch, type, at, actor, details)
SELECT id, seq, CASE WHEN state = 'running' THEN epoch END, :type, (SELECT clock()), :actor,
       :details
FROM jobs WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:jobs) o);
