"""The verbs of this application. The API, the pages and the command line call these."""

from retoma.apps.documents.service import documents, executions, files, projects, status

__all__ = ["documents", "executions", "files", "projects", "status"]
