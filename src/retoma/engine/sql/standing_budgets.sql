-- Budgets of applications and providers by name; those of batches are as many as there were batches.
SELECT gate, scope, name, per, nanos, currency, warned, shut, shut_until, (SELECT clock())
FROM budgets WHERE scope IN ('application', 'provider')
ORDER BY scope, name, gate LIMIT :limit;
