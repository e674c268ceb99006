-- Whether a job of this queue stands in line; zero rows: there is none.
SELECT state = 'waiting' AND turn IS NOT NULL AND aside IS NULL FROM jobs
WHERE id = :job AND queue = :queue;
