-- Set a rate, or change it; what was saved up stays, up to the new burst. What was found by trying is tried anew, and a pause ends.
INSERT INTO rates (key, rate, burst, tokens, at, bound)
VALUES (:key, :rate, :burst, :burst, (SELECT clock()), :rate)
ON CONFLICT (key) DO UPDATE SET rate = excluded.rate, burst = excluded.burst,
    bound = excluded.rate, ceiling = NULL, blocked = 0, recorded = excluded.rate,
    cuts = rates.cuts + 1, passed = 0,
    at = CASE WHEN rates.at > excluded.at THEN excluded.at ELSE rates.at END,
    tokens = CASE WHEN rates.tokens < excluded.burst THEN rates.tokens ELSE excluded.burst END;
