-- Write down what is left of a rate, and up to when that was counted: no time is lost in between.
UPDATE rates SET tokens = :left, at = :counted WHERE key = :key;
