-- name: count_tokens
-- What a rate would have saved up by now without a bound, its rules, up to when it was counted, and what is known of the service.
-- Twin: SQLite has one writer, and counts time in microseconds.
SELECT tokens + rate * (max((SELECT clock()), at) - at) / 1000000.0, rate, burst,
       max((SELECT clock()), at), (at - min((SELECT clock()), at)) / 1000000.0,
       adaptive, bound, ceiling, cuts, passed, blocked, usual,
       (max((SELECT clock()), looked_at) - looked_at) / 1000000.0, recorded
FROM rates WHERE key = :key;
