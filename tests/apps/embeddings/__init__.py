"""The embeddings application."""
