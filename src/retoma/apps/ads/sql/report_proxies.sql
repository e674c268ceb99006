-- How proxies fare: failures in a row, and of late each session that failed or was left, once; the worst first.
SELECT p.id, p.name, p.host, p.port, p.fail_count, p.active, coalesce(e.failures, 0),
       coalesce(e.rotations, 0), e.last_at
FROM proxies p
LEFT JOIN (
    SELECT l.details ->> 'proxy_name' AS name,
           count(*) FILTER (WHERE l.event = 'session_failed') AS failures,
           count(*) FILTER (WHERE l.event = 'proxy_rotated') AS rotations,
           max(CASE WHEN l.event = 'session_failed' THEN l.at END) AS last_at
    FROM ads_logs l
    WHERE l.event IN ('session_failed', 'proxy_rotated') AND l.at > clock_in(:ago)
    GROUP BY 1
) e ON e.name = p.name
ORDER BY p.fail_count DESC, coalesce(e.failures, 0) DESC, p.id LIMIT :n;
