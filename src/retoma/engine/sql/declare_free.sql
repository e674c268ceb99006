-- A person says that nobody uses a thing any more.
UPDATE pool_items SET job = NULL, epoch = NULL, generation = NULL, scope = NULL
WHERE pool = :pool AND name = :name AND job IS NOT NULL
RETURNING id, job;
