-- From now on this rate is found by trying. What a person has set is where it begins and the most it may be; what nobody has set begins slowly.
INSERT INTO rates (key, rate, burst, tokens, at, adaptive, recorded, looked_at)
VALUES (:key, :start, :burst, 1, (SELECT clock()), 1, :start, (SELECT clock()))
ON CONFLICT (key) DO UPDATE SET adaptive = 1, looked_at = excluded.looked_at,
    rate = CASE WHEN rates.bound IS NULL AND rates.rate > excluded.rate THEN excluded.rate ELSE rates.rate END,
    recorded = CASE WHEN rates.bound IS NULL AND rates.rate > excluded.rate THEN excluded.rate ELSE rates.rate END,
    tokens = CASE WHEN rates.bound IS NULL AND rates.tokens > 1 THEN 1 ELSE rates.tokens END,
    bound = coalesce(rates.bound, rates.rate)
WHERE rates.adaptive = 0;
