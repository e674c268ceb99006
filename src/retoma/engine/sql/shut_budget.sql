-- A budget is spent for this period; zero rows: that is known already, or it has changed.
UPDATE budgets SET shut = :period, shut_until = :until
WHERE gate = :gate AND nanos = :nanos AND currency = :currency AND coalesce(shut, '') <> :period
RETURNING gate;
