-- name: count_tokens
-- What a rate would have saved up by now without a bound, its rules, up to when it was counted, and what is known of the service.
-- Twin: the row is locked here; whoever had to wait for it may have looked at the clock before `at`.
SELECT tokens + rate * CAST(extract(epoch FROM greatest((SELECT clock()), at) - at) AS double precision),
       rate, burst, greatest((SELECT clock()), at),
       CAST(extract(epoch FROM at - least((SELECT clock()), at)) AS double precision),
       adaptive, bound, ceiling, cuts, passed, blocked, usual,
       CAST(extract(epoch FROM greatest((SELECT clock()), looked_at) - looked_at) AS double precision),
       recorded
FROM rates WHERE key = :key
FOR UPDATE;
