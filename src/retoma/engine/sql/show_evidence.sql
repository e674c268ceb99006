-- A job shows these bytes under this name.
INSERT INTO job_evidence (job, name, epoch, media, sha256, at, cut_from)
VALUES (:job, :name, :epoch, :media, :sha256, (SELECT clock()), :cut_from)
ON CONFLICT (job, name, epoch) DO UPDATE SET sha256 = excluded.sha256, media = excluded.media,
    at = excluded.at, cut_from = excluded.cut_from;
