-- How many running jobs name each set of limits, for the checker.
SELECT limit_key, count(*) FROM jobs
WHERE runner IS NOT NULL AND limit_key IS NOT NULL
GROUP BY limit_key;
