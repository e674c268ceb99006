"""What holds a job back, shared by all runners: pools, rates, breakers."""
