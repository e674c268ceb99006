-- How many missions a session has begun.
UPDATE ads_sessions SET served = served + 1 WHERE id = :session;
