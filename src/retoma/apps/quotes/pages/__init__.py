"""Quotes in Mission Control: lotes, quotes and their prices, what is stuck, and the stats of the document."""

from retoma.apps.quotes.pages import intake, lotes, quotes, system
from retoma.web.pages.route import page_router

__all__ = ["routes"]

routes = page_router()
# That of quotes stands last: the address of one quote would fit the other pages too.
for each in (intake, lotes, system, quotes):
    routes.include_router(each.routes)
