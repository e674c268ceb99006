-- Alerts, newest first, a page of them.
SELECT id, rule, subject, severity, details, since, closed_at, acknowledged_at, acknowledged_by,
       silenced_until, silenced_by,
       CASE WHEN silenced_until > (SELECT clock()) THEN 1 ELSE 0 END
FROM alerts
WHERE id < coalesce(CAST(:before AS bigint), 9223372036854775807)
ORDER BY id DESC LIMIT :limit;
