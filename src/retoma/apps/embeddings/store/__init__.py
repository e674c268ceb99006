"""The rows of the embeddings application, by named SQL."""

from retoma.apps.embeddings.store import (
    chunks,
    collections,
    documents,
    jobs,
    keywords,
    questions,
)

__all__ = ["chunks", "collections", "documents", "jobs", "keywords", "questions"]
