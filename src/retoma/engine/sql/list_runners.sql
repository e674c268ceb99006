-- Runners, the latest beat first.
SELECT boot, name, host, pid, state, beat_at, lease_until, slots, knows, (SELECT clock())
FROM runners ORDER BY beat_at DESC LIMIT 200;
