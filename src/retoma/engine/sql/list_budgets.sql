-- Budgets after a gate's name, a page at a time, and what time it is.
SELECT gate, scope, name, per, nanos, currency, warned, shut, shut_until, (SELECT clock())
FROM budgets WHERE gate > :after ORDER BY gate LIMIT :limit;
