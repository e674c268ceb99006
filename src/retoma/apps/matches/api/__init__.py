"""Matches over the API: rounds that are scraped, their tasks, what was stored, and how it is repaired."""

from retoma.apps.matches.api import games, repair, scrapes
from retoma.apps.matches.api.wire import routes

__all__ = ["games", "repair", "routes", "scrapes"]
