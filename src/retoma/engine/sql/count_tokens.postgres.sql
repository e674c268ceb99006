-- What a rate would have saved up by now without a bound, and its rules; nobody else spends before this transaction ends.
-- Twin: the row is locked here.
SELECT tokens + CAST(extract(epoch FROM (SELECT clock()) - at) AS double precision) * rate, rate, burst
FROM rates WHERE key = :key
FOR UPDATE;
