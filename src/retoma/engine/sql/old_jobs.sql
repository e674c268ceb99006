-- A page of jobs by id: how old each is, and whether it ended long enough ago to go.
SELECT id, created_at,
       CASE WHEN state IN ('done', 'skipped', 'canceled') AND ended_at < :done_before
             OR state = 'dead' AND (ended_at < :dead_before OR discarded_at < :done_before) THEN 1 ELSE 0 END
FROM jobs WHERE id > :after ORDER BY id LIMIT :page;
