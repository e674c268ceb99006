-- Remember that a budget was warned of in this period; zero rows: it was already, or it has changed.
UPDATE budgets SET warned = :period
WHERE gate = :gate AND nanos = :nanos AND currency = :currency AND coalesce(warned, '') <> :period
RETURNING gate;
