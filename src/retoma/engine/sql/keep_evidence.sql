-- Keep bytes once, however many jobs show them.
INSERT INTO evidence (sha256, codec, size, bytes) VALUES (:sha256, :codec, :size, :bytes)
ON CONFLICT (sha256) DO NOTHING;

INSERT INTO job_evidence (job, name, epoch, media, sha256, at)
VALUES (:job, :name, :epoch, :media, :sha256, (SELECT clock()))
ON CONFLICT (job, name, epoch) DO UPDATE SET sha256 = excluded.sha256, media = excluded.media;
