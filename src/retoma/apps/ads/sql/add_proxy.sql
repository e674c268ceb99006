-- A proxy for sessions to go out by; nothing comes back where another has its name.
INSERT INTO ads_proxies (id, name, host, port, username, vendor, created_at)
VALUES (:id, :name, :host, :port, :username, :vendor, (SELECT clock()))
ON CONFLICT DO NOTHING
RETURNING id;
