"""What is asked of the rows of the embeddings application: one file for each verb."""
