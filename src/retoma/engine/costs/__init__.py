"""What work costs: charges, budgets and the accounts that people read."""
