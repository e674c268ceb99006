-- Old batches that have no job any more, and no tally that is not folded yet.
SELECT b.id FROM batches b
WHERE b.created_at < :done_before AND b.id > :after
  AND NOT EXISTS (SELECT 1 FROM jobs j
                  WHERE j.id BETWEEN b.first_job AND b.last_job AND j.batch = b.id)
  AND NOT EXISTS (SELECT 1 FROM tallies t WHERE t.batch = b.id)
  AND NOT EXISTS (SELECT 1 FROM fillings f WHERE f.batch = b.id)
ORDER BY b.id LIMIT :bite;
