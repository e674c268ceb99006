"""The schema of the quotes application, by number."""
