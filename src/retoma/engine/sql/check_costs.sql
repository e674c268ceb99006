-- What each account of every scope has come to, over all time, for the checker.
SELECT scope, name, provider, model, unit, sort, amount
FROM costs
WHERE scope IN ('all', 'kind', 'application', 'provider') AND period = '';
