"""The schema of the documents application, up and down, on both databases."""
