"""Embeddings in Mission Control, at `/embeddings`: collections, one of them, what failed, search, and intake."""

from retoma.apps.embeddings.pages import collection, collections, dead, intake, search
from retoma.web.pages.route import page_router

__all__ = ["routes"]

routes = page_router()
for each in (intake, search, dead, collections, collection):
    routes.include_router(each.routes)
