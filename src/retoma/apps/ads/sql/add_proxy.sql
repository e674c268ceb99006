-- A proxy for sessions to go out by; its name is its own.
INSERT INTO ads_proxies (id, name, host, port, username, vendor, created_at)
VALUES (:id, :name, :host, :port, :username, :vendor, (SELECT clock()));
