-- Set a rate, or change it; what was saved up stays, up to the new burst.
INSERT INTO rates (key, rate, burst, tokens, at)
VALUES (:key, :rate, :burst, :burst, (SELECT clock()))
ON CONFLICT (key) DO UPDATE SET rate = excluded.rate, burst = excluded.burst,
    tokens = CASE WHEN rates.tokens < excluded.burst THEN rates.tokens ELSE excluded.burst END;
