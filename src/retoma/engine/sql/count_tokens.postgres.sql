-- What a rate has saved up by now, and its rules; nobody else spends before this transaction ends.
-- Twin: the row is locked here.
SELECT least(burst, tokens + CAST(extract(epoch FROM (SELECT clock()) - at) AS double precision) * rate), rate, burst
FROM rates WHERE key = :key
FOR UPDATE;
