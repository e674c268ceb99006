"""The document's Celery tasks. `process_quote_request.delay(42)` is a hint of that quote's job, and no more:
whoever gets it claims in the database, and a message that is lost, late or doubled changes nothing."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from retoma.apps.quotes import store
from retoma.apps.quotes.cleanup import clean_up
from retoma.apps.quotes.model import KIND
from retoma.apps.quotes.steps import CLEAN_UP
from retoma.db import Transaction
from retoma.engine.store.hints import Hint
from retoma.library import Retoma

PROCESS: Final = "process_quote_request"


class Dispatcher(Protocol):
    """A CeleryDispatcher; Celery itself is an extra."""

    def export(self, name: str, find: Callable[[Transaction, int], Hint | None]) -> Any: ...
    def extend_task(self, name: str, run: Callable[[], Coroutine[Any, Any, Any]]) -> None: ...


def export_tasks(dispatcher: Dispatcher, retoma: Retoma) -> Any:
    """The task `process_quote_request`; and Beat's daily `cleanup_old_processing` ends what is too old."""

    async def expire() -> int:
        done = await clean_up(retoma, actor=CLEAN_UP)
        return len(done.waiting) + len(done.parked)

    dispatcher.extend_task(CLEAN_UP, expire)
    return dispatcher.export(PROCESS, hint_of)


def hint_of(tx: Transaction, quote: int) -> Hint | None:
    """None where there is no such quote, or it is history."""
    job = tx.one(store.SQL.job_of_quote, into=int, quote=quote)
    return None if job is None else Hint(KIND, job)
