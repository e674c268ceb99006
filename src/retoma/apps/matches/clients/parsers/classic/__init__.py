"""The old pages: tables, classes in Portuguese, times of the place."""

from retoma.apps.matches.clients.parsers.classic import match, rounds

__all__ = ["match", "rounds"]
