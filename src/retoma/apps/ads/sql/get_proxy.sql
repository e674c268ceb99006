-- What a proxy is, but for its password.
SELECT id, name, host, port, username FROM ads_proxies WHERE id = :proxy;
