-- Whose session goes out by a proxy.
SELECT worker FROM ads_sessions WHERE proxy = :proxy AND ended_at IS NULL;
