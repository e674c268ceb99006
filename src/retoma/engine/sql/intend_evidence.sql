-- Say where bytes are about to be put, if this runner and epoch hold the job; where they lie already, if they do.
INSERT INTO evidence (sha256, codec, size, place, used_at)
SELECT :sha256, :codec, :size, :place, (SELECT clock())
WHERE EXISTS (SELECT 1 FROM jobs WHERE id = :job AND epoch = :epoch AND state = 'running'
              AND runner = :boot)
  AND (SELECT state FROM runners WHERE boot = :boot) IN ('alive', 'leaving')
ON CONFLICT (sha256) DO UPDATE SET used_at = excluded.used_at
RETURNING place, stored_at IS NOT NULL OR bytes IS NOT NULL, used_at;
