-- What a worker is doing, as its session tells.
UPDATE ads_workers SET status = :status, updated_at = (SELECT clock()) WHERE id = :worker;
