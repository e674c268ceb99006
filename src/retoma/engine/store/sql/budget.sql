-- name: budget_spent
-- The money of one account in one period, and that which is not yet added up, with its time.
SELECT unit, at, amount FROM charges
WHERE sort = 'spent' AND unit IN ('usd', 'brl', 'unpriced')
  AND CASE CAST(:scope AS text) WHEN 'batch' THEN CAST(batch AS text)
          WHEN 'application' THEN application ELSE provider END = :name
UNION ALL
SELECT unit, NULL, amount FROM costs
WHERE scope = :scope AND name = :name AND period = :period AND sort = 'spent'
  AND unit IN ('usd', 'brl', 'unpriced');

-- name: find_budgets
-- The budgets that a call of this batch, application and provider would spend, and what time it is.
SELECT gate, scope, name, per, nanos, currency, warned, shut, shut_until, (SELECT clock())
FROM budgets
WHERE scope = 'batch' AND name = :batch OR scope = 'application' AND name = :application
   OR scope = 'provider' AND name = :provider
ORDER BY gate;

-- name: get_budget
-- One budget, and what time it is.
SELECT gate, scope, name, per, nanos, currency, warned, shut, shut_until, (SELECT clock())
FROM budgets WHERE gate = :gate;

-- name: list_budgets
-- Budgets after a gate's name, a page at a time, and what time it is.
SELECT gate, scope, name, per, nanos, currency, warned, shut, shut_until, (SELECT clock())
FROM budgets WHERE gate > :after ORDER BY gate LIMIT :limit;

-- name: put_budget
-- Set a budget, or change it; whether it is spent is looked at anew.
INSERT INTO budgets (gate, scope, name, per, nanos, currency)
VALUES (:gate, :scope, :name, :per, :nanos, :currency)
ON CONFLICT (gate) DO UPDATE SET nanos = excluded.nanos, currency = excluded.currency,
    warned = NULL, shut = NULL, shut_until = NULL;

-- name: remove_budget
-- A budget is no more; zero rows: there was none.
DELETE FROM budgets WHERE gate = :gate RETURNING gate;

-- name: shut_budget
-- A budget is spent for this period; zero rows: that is known already, or it has changed.
UPDATE budgets SET shut = :period, shut_until = :until
WHERE gate = :gate AND nanos = :nanos AND currency = :currency AND coalesce(shut, '') <> :period
RETURNING gate;

-- name: standing_budgets
-- Budgets of applications and providers by name; those of batches are as many as there were batches.
SELECT gate, scope, name, per, nanos, currency, warned, shut, shut_until, (SELECT clock())
FROM budgets WHERE scope IN ('application', 'provider')
ORDER BY scope, name, gate LIMIT :limit;

-- name: warn_budget
-- Remember that a budget was warned of in this period; zero rows: it was already, or it has changed.
UPDATE budgets SET warned = :period
WHERE gate = :gate AND nanos = :nanos AND currency = :currency AND coalesce(warned, '') <> :period
RETURNING gate;
