-- name: dead_causes
-- Why each of these jobs is dead: what its last burial said.
SELECT j.id, j.kind, j.code, j.ended_at,
       (SELECT e.details FROM events e WHERE e.job = j.id AND e.type = 'buried'
        ORDER BY e.seq DESC LIMIT 1)
FROM jobs j
WHERE j.id IN (SELECT CAST(o.key AS bigint) FROM json_each(:ids) o)
ORDER BY j.id DESC;

-- name: list_dead_ids
-- The ids of dead letters that nobody has put away, newest first, by their own index.
SELECT id FROM jobs
WHERE state = 'dead' AND discarded_at IS NULL
  AND id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY id DESC LIMIT :limit;

-- name: match_jobs
-- Which of these jobs are as somebody wants them, newest first.
-- A text is looked for as it was written, and without regard to case as far as the database knows how.
SELECT id FROM jobs
WHERE id IN (SELECT CAST(o.key AS bigint) FROM json_each(:ids) o)
  AND (CAST(:letters AS integer) = 0 OR discarded_at IS NULL)
  AND (CAST(:state AS text) IS NULL OR (state = :state) IS TRUE)
  AND (CAST(:kind AS text) IS NULL OR kind = :kind)
  AND (CAST(:batch AS bigint) IS NULL OR batch = :batch)
  AND (CAST(:code AS text) IS NULL OR code = :code)
  AND (CAST(:checkpoint AS text) IS NULL OR checkpoint = :checkpoint)
  AND (CAST(:sought AS text) IS NULL
       OR replace(coalesce(key, ''), :sought, '') <> coalesce(key, '')
       OR replace(coalesce(correlation, ''), :sought, '') <> coalesce(correlation, '')
       OR replace(coalesce(note, ''), :sought, '') <> coalesce(note, '')
       OR replace(substr(CAST(payload AS text), 1, :within), :sought, '')
          <> substr(CAST(payload AS text), 1, :within)
       OR replace(lower(coalesce(key, '')), lower(:sought), '') <> lower(coalesce(key, ''))
       OR replace(lower(coalesce(correlation, '')), lower(:sought), '') <> lower(coalesce(correlation, ''))
       OR replace(lower(coalesce(note, '')), lower(:sought), '') <> lower(coalesce(note, ''))
       OR replace(lower(substr(CAST(payload AS text), 1, :within)), lower(:sought), '')
          <> lower(substr(CAST(payload AS text), 1, :within)))
ORDER BY id DESC LIMIT :limit;
