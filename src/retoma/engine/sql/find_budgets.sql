-- The budgets that a call of this batch, application and provider would spend, and what time it is.
SELECT gate, scope, name, per, nanos, currency, warned, shut, shut_until, (SELECT clock())
FROM budgets
WHERE scope = 'batch' AND name = :batch OR scope = 'application' AND name = :application
   OR scope = 'provider' AND name = :provider
ORDER BY gate;
