-- name: known_missions
-- Missions of these days that are there already.
SELECT id, date_start, date_end, media_type, languages FROM ads_missions
WHERE deleted_at IS NULL AND CAST(date_start AS text) >= :since AND CAST(date_end AS text) <= :until;

-- name: known_proxies
-- By what a proxy is known already: its name, or where it stands and for whom.
SELECT id, name, host, port, username FROM ads_proxies WHERE deleted_at IS NULL;

-- name: known_workers
-- By what a worker is known already: two rows for one would give it two commands at once.
SELECT id, url FROM ads_workers WHERE deleted_at IS NULL;

-- name: known_writers
-- By what a writer is known already.
SELECT id, url FROM ads_writers WHERE deleted_at IS NULL;
