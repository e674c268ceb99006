-- The pause that holds a kind in a queue, if there is one; of several the first.
SELECT p.scope, p.name, p.since, p.actor, p.why FROM pauses p
WHERE p.scope = 'queue' AND p.name = :queue
   OR p.scope = 'kind' AND p.name = :kind
   OR p.scope = 'application' AND p.name = (SELECT k.application FROM kinds k WHERE k.name = :kind)
ORDER BY p.since LIMIT 1;
