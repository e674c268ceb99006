-- What a rate would have saved up by now without a bound, its rules, and up to when it was counted.
-- Twin: the row is locked here; whoever had to wait for it may have looked at the clock before `at`.
SELECT tokens + rate * CAST(extract(epoch FROM greatest((SELECT clock()), at) - at) AS double precision),
       rate, burst, greatest((SELECT clock()), at)
FROM rates WHERE key = :key
FOR UPDATE;
