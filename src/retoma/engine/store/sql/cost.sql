-- name: list_costs
-- What one account, or each of its sort, came to in some periods.
-- Beside it all that is not yet added up, each charge with its time: whoever adds both is right at
-- every instant.
SELECT CASE CAST(:scope AS text)
           WHEN 'job' THEN CAST(job AS text) WHEN 'batch' THEN CAST(batch AS text)
           WHEN 'kind' THEN kind WHEN 'application' THEN application
           WHEN 'provider' THEN provider ELSE '' END AS name,
       '' AS period, at, provider, model, unit, sort, amount
FROM charges
UNION ALL
SELECT name, period, NULL, provider, model, unit, sort, amount
FROM costs
WHERE scope = :scope AND name >= :first_name AND name <= :last_name
  AND period >= :first AND period <= :last AND length(period) = :length;

-- name: now
-- The time by which everything is measured.
SELECT (SELECT clock());

-- name: take_charges
-- Take the oldest charges out, to be added up; one who has the duty does so at a time.
DELETE FROM charges WHERE id IN (SELECT id FROM charges ORDER BY id LIMIT :bite)
RETURNING at, job, batch, kind, application, provider, model, unit, sort, amount;
