-- By what a proxy is known already: its name, or where it stands and for whom.
SELECT id, name, host, port, username FROM ads_proxies WHERE deleted_at IS NULL;
