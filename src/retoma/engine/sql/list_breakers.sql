-- Every breaker, and whether its next probe is due.
SELECT name, state, failures, threshold, rest, reason, since, probe_at,
       CASE WHEN probe_at <= (SELECT clock()) THEN 1 ELSE 0 END
FROM breakers ORDER BY name;
