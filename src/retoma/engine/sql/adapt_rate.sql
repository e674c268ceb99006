-- Write down what was found out about a service, and what is left of its rate.
UPDATE rates SET tokens = :left, at = :counted, rate = :rate, ceiling = :ceiling, cuts = :cuts,
    passed = :passed, blocked = :blocked, usual = :usual, recorded = :recorded,
    looked_at = CASE WHEN :looked = 1 THEN :counted ELSE looked_at END
WHERE key = :key;
