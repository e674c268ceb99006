-- Matches of a run that are not stored, and how their tasks stand; without what was dropped.
SELECT v.match_key, v.status, v.job FROM scrape_tasks v
WHERE v.job_id = :run AND v.partida_id IS NULL AND v.dropped IS NULL ORDER BY v.match_key;
