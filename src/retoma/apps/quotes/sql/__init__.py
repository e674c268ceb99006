"""What the quotes application asks of its tables, a verb a file."""
