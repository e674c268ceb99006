"""What the ads orchestrator asks of its tables, a verb a file."""
