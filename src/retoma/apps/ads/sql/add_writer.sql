-- A writer that may be given ads.
INSERT INTO ads_writers (id, name, url, active, created_at, updated_at)
VALUES (:id, :name, :url, :active, (SELECT clock()), (SELECT clock()));
