-- Every rate.
SELECT key, rate, burst, tokens, adaptive, bound, ceiling, refused, refused_at,
       CASE WHEN at > (SELECT clock()) THEN at END
FROM rates ORDER BY key;
