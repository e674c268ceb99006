-- What a scrape gave; from here on the mission is the writer's (§2.5.2), or done where there was nothing.
UPDATE ads_missions
SET error_code = NULL, error_message = NULL, ads_count = :ads, worker_data_url = :url, scraped_at = (SELECT clock()),
    status = CASE WHEN :empty = 1 THEN 'completed' ELSE status END,
    checkpoint = CASE WHEN :empty = 1 THEN 'finalizado' ELSE 'armazenamento' END,
    finished_at = CASE WHEN :empty = 1 THEN (SELECT clock()) END
WHERE id = :mission AND extraction = :job AND status = 'running'
RETURNING queued_at, scraped_at;
