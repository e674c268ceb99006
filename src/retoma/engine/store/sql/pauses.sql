-- name: change_pauses
-- Every claim that has not heard of it is given nothing from now on, until it has.
UPDATE meta SET value = CAST(CAST(value AS bigint) + 1 AS text) WHERE name = 'pauses';

-- name: declare_kind
-- Write down where a kind belongs, as the code has it.
INSERT INTO kinds (name, application, queue) VALUES (:name, :application, :queue)
ON CONFLICT (name) DO UPDATE SET application = excluded.application, queue = excluded.queue;

-- name: holding_pause
-- The pause that holds a kind in a queue, if there is one; of several the first.
SELECT p.scope, p.name, p.since, p.actor, p.why FROM pauses p
WHERE p.scope = 'queue' AND p.name = :queue
   OR p.scope = 'kind' AND p.name = :kind
   OR p.scope = 'application' AND p.name = (SELECT k.application FROM kinds k WHERE k.name = :kind)
ORDER BY p.since LIMIT 1;

-- name: known_pauses
-- What is paused, and which kinds are because their application is.
-- Each row begins with how often pauses have changed: so a claim says that it has heard of all of them.
SELECT m.value, p.what, p.name
FROM meta m LEFT JOIN (
    SELECT scope AS what, name FROM pauses
    UNION ALL
    SELECT 'kind of application', k.name FROM pauses a JOIN kinds k ON k.application = a.name
    WHERE a.scope = 'application'
) p ON true
WHERE m.name = 'pauses';

-- name: list_kinds
-- Which kinds anybody has ever declared, to which application each belongs, in which queue it stands.
SELECT name, application, queue FROM kinds ORDER BY name;

-- name: list_pauses
-- Everything that is paused, since when and by whom; what was paused first, first.
SELECT scope, name, since, actor, why FROM pauses ORDER BY since, scope, name;

-- name: pause
-- From now on nothing of it is claimed. Zero rows: it is paused already.
INSERT INTO pauses (scope, name, since, actor, why)
VALUES (:scope, :name, (SELECT clock()), :actor, :why)
ON CONFLICT (scope, name) DO NOTHING
RETURNING name;

-- name: resume
-- It may be claimed again. Zero rows: it was not paused.
DELETE FROM pauses WHERE scope = :scope AND name = :name RETURNING name;
