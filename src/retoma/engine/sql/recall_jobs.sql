-- What one boot holds: a claim whose answer was lost is found here, under its epoch.
SELECT id, epoch, kind, version, batch, generation, fresh_from, failures, lost, released,
       checkpoint, correlation, deadline, payload, queue, priority, turn
FROM jobs WHERE runner = :boot;
