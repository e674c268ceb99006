"""The dispatcher of every house that has no other: the bell rang with the commit, and the tick finds
what no bell announced. There is nothing to add."""

from collections.abc import Sequence
from typing import Protocol

from retoma.engine.store.hints import Hint


class Dispatcher(Protocol):
    """Who is told that jobs may be ready. A hint may be lost, late or doubled: it changes nothing."""

    most: int  # hints it takes of one submission; 0: it wants none

    def hint(self, hints: Sequence[Hint]) -> None:
        """These may be ready. Called after their commit; returns at once and never raises."""

    def close(self) -> None:
        """Let go; what is on its way gets a moment, and no more."""


class Polling:
    """Runners hear the bell of the database, or look on their tick."""

    most = 0

    def hint(self, hints: Sequence[Hint]) -> None:
        """They have heard."""

    def close(self) -> None:
        """Nothing is open."""
