"""The verbs of the matches application, called by its API, its pages and its command line alike."""

from retoma.apps.matches.service import boards, games, repairs, replays, scrapes, snapshots

__all__ = ["boards", "games", "repairs", "replays", "scrapes", "snapshots"]
