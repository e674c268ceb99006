-- What a rate would have saved up by now without a bound, and its rules; nobody else spends before this transaction ends.
-- Twin: SQLite has one writer, and counts time in microseconds.
SELECT tokens + ((SELECT clock()) - at) / 1000000.0 * rate, rate, burst
FROM rates WHERE key = :key;
