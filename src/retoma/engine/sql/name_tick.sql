-- Which job a tick submitted.
UPDATE ticks SET job = :job WHERE schedule = :schedule AND at = :at;
