-- Which job drives a session.
UPDATE ads_sessions SET job = :job WHERE id = :session;
