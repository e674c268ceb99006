"""The schema of the matches application, up and down, on both databases."""
