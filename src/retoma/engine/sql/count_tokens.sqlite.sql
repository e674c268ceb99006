-- What a rate would have saved up by now without a bound, its rules, and up to when it was counted.
-- Twin: SQLite has one writer, and counts time in microseconds.
SELECT tokens + rate * (max((SELECT clock()), at) - at) / 1000000.0, rate, burst,
       max((SELECT clock()), at)
FROM rates WHERE key = :key;
