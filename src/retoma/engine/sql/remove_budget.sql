-- A budget is no more; zero rows: there was none.
DELETE FROM budgets WHERE gate = :gate RETURNING gate;
