-- How many bytes a job shows, not counting what this name shows now.
SELECT coalesce(sum(e.size), 0) FROM job_evidence s JOIN evidence e ON e.sha256 = s.sha256
WHERE s.job = :job AND NOT (s.name = :name AND s.epoch = :epoch);
