-- What one boot holds: a claim whose answer was lost is found here, under its epoch.
-- Twin: lengths of time are counted by extract() here, in microseconds there.
SELECT id, epoch, kind, version, batch, generation, fresh_from, failures, lost, released,
       checkpoint, correlation,
       CAST(extract(epoch FROM deadline) - extract(epoch FROM (SELECT clock()))
           AS double precision) AS time_left,
       payload, queue, priority, turn, limit_key
FROM jobs WHERE runner = :boot;
