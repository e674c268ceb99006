-- name: adapt_rate
-- Write down what was found out about a service, and what is left of its rate.
UPDATE rates SET tokens = :left, at = :counted, rate = :rate, ceiling = :ceiling, cuts = :cuts,
    passed = :passed, blocked = :blocked, usual = :usual, recorded = :recorded,
    looked_at = CASE WHEN :looked = 1 THEN :counted ELSE looked_at END
WHERE key = :key;

-- name: adopt_rate
-- From now on this rate is found by trying. What a person has set is where it begins and the most it may be; what nobody has set begins slowly.
INSERT INTO rates (key, rate, burst, tokens, at, adaptive, recorded, looked_at)
VALUES (:key, :start, :burst, 1, (SELECT clock()), 1, :start, (SELECT clock()))
ON CONFLICT (key) DO UPDATE SET adaptive = 1, looked_at = excluded.looked_at,
    rate = CASE WHEN rates.bound IS NULL AND rates.rate > excluded.rate THEN excluded.rate ELSE rates.rate END,
    recorded = CASE WHEN rates.bound IS NULL AND rates.rate > excluded.rate THEN excluded.rate ELSE rates.rate END,
    tokens = CASE WHEN rates.bound IS NULL AND rates.tokens > 1 THEN 1 ELSE rates.tokens END,
    bound = coalesce(rates.bound, rates.rate)
WHERE rates.adaptive = 0;

-- name: list_rates
-- Every rate.
SELECT key, rate, burst, tokens, adaptive, bound, ceiling, refused, refused_at,
       CASE WHEN at > (SELECT clock()) THEN at END
FROM rates ORDER BY key;

-- name: pause_rate
-- Count refused calls, and permit none for so many seconds: tokens are counted from the end of the pause.
UPDATE rates SET refused = refused + :refused, refused_at = (SELECT clock()),
    tokens = CASE WHEN tokens < 0 THEN tokens ELSE 0 END,
    at = CASE WHEN at < clock_in(:pause) THEN clock_in(:pause) ELSE at END,
    looked_at = CASE WHEN looked_at < clock_in(:pause) THEN clock_in(:pause) ELSE looked_at END
WHERE key = :key;

-- name: put_rate
-- Set a rate, or change it; what was saved up stays, up to the new burst. What was found by trying is tried anew, and a pause ends.
INSERT INTO rates (key, rate, burst, tokens, at, bound)
VALUES (:key, :rate, :burst, :burst, (SELECT clock()), :rate)
ON CONFLICT (key) DO UPDATE SET rate = excluded.rate, burst = excluded.burst,
    bound = excluded.rate, ceiling = NULL, blocked = 0, recorded = excluded.rate,
    cuts = rates.cuts + 1, passed = 0,
    at = CASE WHEN rates.at > excluded.at THEN excluded.at ELSE rates.at END,
    tokens = CASE WHEN rates.tokens < excluded.burst THEN rates.tokens ELSE excluded.burst END;

-- name: spend_tokens
-- Write down what is left of a rate, and up to when that was counted: no time is lost in between.
UPDATE rates SET tokens = :left, at = :counted WHERE key = :key;
