-- The jobs whose turn it is, for code that claims them one by one: those that have waited for their time first.
SELECT id FROM (
    SELECT id FROM jobs
    WHERE queue = 'embeddings.document' AND state = 'waiting' AND turn IS NULL
      AND run_at <= (SELECT clock()) AND aside IS NULL
    ORDER BY run_at LIMIT :n) due
UNION ALL
SELECT id FROM (
    SELECT id FROM jobs
    WHERE queue = 'embeddings.document' AND state = 'waiting' AND turn IS NOT NULL
      AND aside IS NULL AND lost < 2
    ORDER BY priority, turn, id LIMIT :n) line;
