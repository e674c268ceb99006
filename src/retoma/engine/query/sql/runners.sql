-- name: list_runners
-- Runners, the latest beat first, each with how many jobs are its own: those it runs or is settling.
SELECT r.boot, r.name, r.host, r.pid, r.state, r.beat_at, r.lease_until, r.slots, r.knows,
       r.lease_until < (SELECT clock()) AS expired,
       (SELECT count(*) FROM jobs j WHERE j.runner = r.boot) AS held, r.trouble,
       r.drain_at, r.version
FROM runners r ORDER BY r.beat_at DESC LIMIT 200;
