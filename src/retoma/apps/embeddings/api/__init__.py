"""Embeddings over the API: collections, documents, their jobs as the document has them, search."""

from retoma.apps.embeddings.api import collections, documents, jobs, search
from retoma.apps.embeddings.api.wire import routes

__all__ = ["collections", "documents", "jobs", "routes", "search"]
