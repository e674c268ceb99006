-- The attempts as they were shown before.
DROP VIEW attempts;

CREATE VIEW attempts AS
SELECT c.job, c.epoch, c.actor AS runner, c.at AS claimed_at, e.at AS ended_at,
       CASE WHEN e.type <> 'buried' THEN e.type
            WHEN e.details ->> 'reason' = 'poison' THEN 'lost'
            ELSE 'failed' END AS ended,
       e.details
FROM events c
LEFT JOIN events e ON e.job = c.job AND e.epoch = c.epoch AND e.type IN
    ('done', 'skipped', 'failed', 'buried', 'lost', 'released', 'snoozed', 'parked', 'canceled')
WHERE c.type = 'claimed';
