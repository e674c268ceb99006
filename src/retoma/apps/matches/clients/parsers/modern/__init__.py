"""The relaunched pages: sections with data attributes, times with their zone."""

from retoma.apps.matches.clients.parsers.modern import match, rounds

__all__ = ["match", "rounds"]
