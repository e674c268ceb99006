"""The schema of the ads orchestrator, by number."""
