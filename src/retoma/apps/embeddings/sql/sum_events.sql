-- What ever happened to jobs of a kind, how often and for how long; added up to this instant.
SELECT event, sum(n), sum(ms) FROM (
    SELECT event, n, ms FROM totals WHERE kind = :kind
    UNION ALL
    SELECT event, n, coalesce(ms, 0) FROM tallies WHERE kind = :kind AND event IS NOT NULL) each_
GROUP BY event;
