-- How many run under each limit, and how many may: those of whole kinds first, others as far as there is room.
SELECT key, coalesce(by_hand, cap), used FROM (
    SELECT key, by_hand, cap, used FROM limits WHERE key >= 'kind:' AND key < 'kind;'
    ORDER BY key LIMIT :most) own
UNION ALL
SELECT key, coalesce(by_hand, cap), used FROM (
    SELECT key, by_hand, cap, used FROM limits WHERE key < 'kind:' OR key >= 'kind;'
    ORDER BY key LIMIT :most) others;
