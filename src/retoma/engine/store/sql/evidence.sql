-- name: drop_evidence
-- Delete what no job shows and nobody is about to show, of one page. A place it had is left to be emptied.
DELETE FROM evidence
WHERE sha256 > :after AND sha256 <= :last AND used_at < (SELECT clock_in(:grace))
  AND NOT EXISTS (SELECT 1 FROM job_evidence s WHERE s.sha256 = evidence.sha256)
RETURNING sha256;

-- name: get_evidence
-- Where bytes lie, or the bytes themselves; and what time it is.
SELECT codec, size, bytes, place, stored_at IS NOT NULL, (SELECT clock()) FROM evidence WHERE sha256 = :sha256;

-- name: hold_for_evidence
-- Number the next event of a job, if this runner and epoch still hold it.
UPDATE jobs SET seq = seq + 1
WHERE id = :job AND epoch = :epoch AND state = 'running' AND runner = :boot
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
RETURNING seq;

-- name: intend_evidence
-- Say where bytes are about to be put, if this runner and epoch hold the job; where they lie already, if they do.
INSERT INTO evidence (sha256, codec, size, place, used_at)
SELECT :sha256, :codec, :size, :place, (SELECT clock())
WHERE EXISTS (SELECT 1 FROM jobs WHERE id = :job AND epoch = :epoch AND state = 'running'
              AND runner = :boot)
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
ON CONFLICT (sha256) DO UPDATE SET used_at = excluded.used_at
RETURNING place, stored_at IS NOT NULL OR bytes IS NOT NULL, used_at;

-- name: keep_evidence
-- Keep bytes once, however many jobs show them. Where they were only intended for a shelf, they move in.
INSERT INTO evidence (sha256, codec, size, bytes, used_at)
VALUES (:sha256, :codec, :size, :bytes, (SELECT clock()))
ON CONFLICT (sha256) DO UPDATE SET used_at = excluded.used_at,
    place = CASE WHEN evidence.bytes IS NULL AND evidence.stored_at IS NULL
                 THEN NULL ELSE evidence.place END,
    bytes = CASE WHEN evidence.bytes IS NULL AND evidence.stored_at IS NULL
                 THEN excluded.bytes ELSE evidence.bytes END;

-- name: page_of_evidence
-- The end of the next page of evidence, by its digest; null where there is none.
SELECT max(sha256) FROM (
    SELECT sha256 FROM evidence WHERE sha256 > :after ORDER BY sha256 LIMIT :page) looked_at;

-- name: places_left
-- Places of one shelf whose bytes nobody needs, the oldest first, a bite at a time; and what time it is.
SELECT place, (SELECT clock()) FROM places_left
WHERE substr(place, 1, length(:base)) = :base AND at < (SELECT clock_in(:grace))
ORDER BY at, place LIMIT :bite;

-- name: place_emptied
-- The bytes are gone.
DELETE FROM places_left WHERE place = :place;

-- name: show_evidence
-- A job shows these bytes under this name.
INSERT INTO job_evidence (job, name, epoch, media, sha256, at, cut_from)
VALUES (:job, :name, :epoch, :media, :sha256, (SELECT clock()), :cut_from)
ON CONFLICT (job, name, epoch) DO UPDATE SET sha256 = excluded.sha256, media = excluded.media,
    at = excluded.at, cut_from = excluded.cut_from;

-- name: size_of_evidence
-- How many bytes a job shows, not counting what this name shows now.
SELECT coalesce(sum(e.size), 0) FROM job_evidence s JOIN evidence e ON e.sha256 = s.sha256
WHERE s.job = :job AND NOT (s.name = :name AND s.epoch = :epoch);

-- name: store_evidence
-- The bytes are where the intent said, or in the database by now. Zero rows: the intent is gone.
UPDATE evidence SET stored_at = CASE WHEN place IS NULL THEN stored_at
                                     ELSE coalesce(stored_at, (SELECT clock())) END,
    used_at = (SELECT clock())
WHERE sha256 = :sha256 AND (place = :place OR bytes IS NOT NULL)
RETURNING sha256;
