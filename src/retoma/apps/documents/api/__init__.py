"""Documents over the API, under `/classificador`: projects, executions, and the document's four endpoints."""

from retoma.apps.documents.api import arquivos, execucoes, projetos, recuperacao
from retoma.apps.documents.api.wire import routes

__all__ = ["arquivos", "execucoes", "projetos", "recuperacao", "routes"]
