-- Declare a breaker, or change its rules; whether it is open stays.
INSERT INTO breakers (name, threshold, rest) VALUES (:name, :threshold, :rest)
ON CONFLICT (name) DO UPDATE SET threshold = excluded.threshold, rest = excluded.rest;
