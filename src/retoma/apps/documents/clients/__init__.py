"""What a document is classified with: readers of files, and the model."""
