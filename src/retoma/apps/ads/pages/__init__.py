"""The ads orchestrator in Mission Control, in the document's words."""

from retoma.apps.ads.pages import control, imports, missions, reports, things
from retoma.web.pages.route import page_router

__all__ = ["routes"]

routes = page_router()
for each in (control, imports, missions, reports, things):
    routes.include_router(each.routes)
