-- Jobs of quotes that runners of this name hold: as many are looked at as there are slots in use.
-- Materialized, or an order by id is taken from the primary key, past everything that has ended.
WITH held AS MATERIALIZED (SELECT id, runner FROM jobs WHERE runner > '' AND kind = 'quotes.quote')
SELECT h.id FROM held h JOIN runners r ON r.boot = h.runner WHERE r.name = :worker
ORDER BY h.id DESC;
