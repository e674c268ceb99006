"""The rows of the documents application, by named SQL."""

from retoma.apps.documents.store import contents, documents, executions, projects

__all__ = ["contents", "documents", "executions", "projects"]
