"""The rows of the matches application, by named SQL."""

from retoma.apps.matches.store import boards, games, repairs, runs, tasks

__all__ = ["boards", "games", "repairs", "runs", "tasks"]
