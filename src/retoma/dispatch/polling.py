"""The default dispatcher, which sends nothing: the database notifies runners at commit, and their tick
finds jobs whose notification was lost."""

from collections.abc import Sequence
from typing import Protocol

from retoma.engine.store.hints import Hint


class Dispatcher(Protocol):
    """Announces jobs that may be ready. Hints may be lost, late or duplicated."""

    most: int  # hints it accepts per submission; 0: none

    def hint(self, hints: Sequence[Hint]) -> None:
        """Announce jobs that may be ready. Called after their commit; returns at once and never raises."""

    def close(self) -> None:
        """Stop; hints that are being sent get a short time to finish."""


class Polling:
    """Leaves wake-ups to the database's notifications and the runners' tick."""

    most = 0

    def hint(self, hints: Sequence[Hint]) -> None:
        """Do nothing: the database has notified the runners."""

    def close(self) -> None:
        """Do nothing: nothing is open."""
