"""Quotes over the API: those of the document under `/api/system`, and the quotes and lotes themselves."""

from retoma.apps.quotes.api import lotes, quotes, system
from retoma.apps.quotes.api.wire import routes

__all__ = ["lotes", "quotes", "routes", "system"]
