-- A worker that may be given sessions.
INSERT INTO ads_workers (id, name, url, storage_domain, active, created_at, updated_at)
VALUES (:id, :name, :url, :storage_domain, :active, (SELECT clock()), (SELECT clock()));
