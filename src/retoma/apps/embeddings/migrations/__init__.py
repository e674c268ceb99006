"""The schema of the embeddings application, up and down, on both databases."""
