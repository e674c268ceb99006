-- Links and sessions that were over long ago; the audit log still tells of them.
DELETE FROM sign_in_links WHERE expires_at < (SELECT clock_in(:kept));

DELETE FROM sign_in_sessions WHERE expires_at < (SELECT clock_in(:kept));
