-- How a claim ended, for a runner that never got the answer to its own settling.
SELECT j.state FROM events e JOIN jobs j ON j.id = e.job
WHERE e.job = :job AND e.epoch = :epoch AND e.type IN ('done', 'skipped', 'failed', 'buried',
    'released', 'snoozed', 'parked', 'canceled');
