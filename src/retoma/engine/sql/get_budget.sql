-- One budget, and what time it is.
SELECT gate, scope, name, per, nanos, currency, warned, shut, shut_until, (SELECT clock())
FROM budgets WHERE gate = :gate;
