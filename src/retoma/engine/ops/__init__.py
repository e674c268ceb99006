"""What is done beside the jobs: batches, schedules, alerts, retention, recovery."""
