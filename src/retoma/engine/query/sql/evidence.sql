-- name: job_evidence
-- What a job shows, the oldest first.
SELECT s.name, s.media, s.epoch, s.sha256, e.size, s.cut_from, s.at
FROM job_evidence s JOIN evidence e ON e.sha256 = s.sha256
WHERE s.job = :job
ORDER BY s.at, s.epoch, s.name;
