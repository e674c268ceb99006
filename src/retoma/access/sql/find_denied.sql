-- The newest line that somebody was denied this, where it is not older than so many seconds.
SELECT id, details FROM audit
WHERE at > (SELECT clock_in(:ago)) AND actor = :actor AND verb = 'authz_denied'
  AND subject = :subject
ORDER BY at DESC, id DESC LIMIT 1;
