"""The document's Celery task. `scrape_match.delay(7)` is a hint of that task's job, and no more.

The document sends an address; whoever may write to the broker could then name any (H-47). What is scraped is
in the database, and whoever gets the hint claims there: one that is lost, late or doubled changes nothing (H-45).
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from retoma.apps.matches import store
from retoma.apps.matches.model import MATCH
from retoma.db import Transaction
from retoma.engine.rules.errors import NotFound
from retoma.engine.store.hints import Hint

SCRAPE_MATCH: Final = "scrape_match"


class Dispatcher(Protocol):
    """A CeleryDispatcher; Celery itself is an extra."""

    def export(self, name: str, find: Callable[[Transaction, int], Hint | None]) -> Any: ...


def export_tasks(dispatcher: Dispatcher) -> Any:
    """The task `scrape_match`, by the number of a `scrape_tasks` row."""
    return dispatcher.export(SCRAPE_MATCH, hint_of)


def hint_of(tx: Transaction, task: int) -> Hint | None:
    """None where there is no such task."""
    try:
        found = store.tasks.task_of(tx, task)
    except NotFound:
        return None
    return Hint(MATCH, found.job)
