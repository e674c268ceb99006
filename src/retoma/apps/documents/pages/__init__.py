"""Documents in Mission Control, at `/classificador/`: executions, their documents, projects, and how they come in.

The API has the plural of a word (`/classificador/execucoes`), a page its singular.
"""

from retoma.apps.documents.pages import documents, executions, intake, projects
from retoma.web.pages.route import page_router

__all__ = ["routes"]

routes = page_router()
for each in (intake, executions, documents, projects):
    routes.include_router(each.routes)
