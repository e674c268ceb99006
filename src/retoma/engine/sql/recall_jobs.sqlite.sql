-- What one boot holds: a claim whose answer was lost is found here, under its epoch.
-- Twin: lengths of time are counted by extract() there, in microseconds here.
SELECT id, epoch, kind, version, batch, generation, fresh_from, failures, lost, released,
       checkpoint, correlation, (deadline - (SELECT clock())) / 1000000.0 AS time_left, payload,
       queue, priority, turn, limit_key
FROM jobs WHERE runner = :boot;
