-- Every rate.
SELECT key, rate, burst, tokens FROM rates ORDER BY key;
