-- Set a budget, or change it; whether it is spent is looked at anew.
INSERT INTO budgets (gate, scope, name, per, nanos, currency)
VALUES (:gate, :scope, :name, :per, :nanos, :currency)
ON CONFLICT (gate) DO UPDATE SET nanos = excluded.nanos, currency = excluded.currency,
    warned = NULL, shut = NULL, shut_until = NULL;
