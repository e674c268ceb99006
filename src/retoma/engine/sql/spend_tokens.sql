-- Write down what is left of a rate.
UPDATE rates SET tokens = :left, at = (SELECT clock()) WHERE key = :key;
