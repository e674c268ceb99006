-- What the index (lockedBy) was for: as many jobs are looked at as there are slots in use.
WITH held AS MATERIALIZED (
    SELECT id, runner FROM jobs WHERE runner > '' AND kind = 'embeddings.document')
SELECT h.id FROM held h JOIN runners r ON r.boot = h.runner WHERE r.name = :worker
ORDER BY h.id DESC;
