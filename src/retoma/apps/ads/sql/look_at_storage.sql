-- What a mission's ads are stored with: where they lie, the writer that has them, its turn, whether they are still wanted.
SELECT worker_data_url, writer_id, parks, status = 'running', resends FROM ads_missions
WHERE id = :mission;
