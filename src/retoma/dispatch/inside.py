"""retoma inside one process of Celery: a loop in a thread of its own, and on it a runner that heeds hints.

Begun by the first message, so after the fork: every connection belongs to the process that uses it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from retoma.db import Database
from retoma.dispatch.family import Family
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.loop_thread import LoopThread
from retoma.engine.ports import Clock
from retoma.engine.run.hinted import HintedRunner
from retoma.engine.run.runner_options import GRACE, LET_GO
from retoma.engine.run.running_jobs import LOOK
from retoma.engine.store.hints import Hint

T = TypeVar("T")

LEAVE = GRACE + 2 * LET_GO  # seconds until whoever waits for us to leave goes without us


class Home(Protocol):
    """What a dispatcher asks of a Retoma."""

    kinds: Kinds
    dispatcher: Any
    timezone: str

    @property
    def clock(self) -> Clock: ...
    async def database(self) -> Database: ...
    async def hinted(self, **knobs: Any) -> HintedRunner: ...
    async def close(self) -> None: ...


class Inside:
    """One per process, for as long as it lives."""

    def __init__(self, home: Home, family: Family, knobs: dict[str, Any]) -> None:
        self._home = home
        self._leaving = family.leaving
        self._knobs = knobs
        self._runner: HintedRunner | None = None
        self._making = asyncio.Lock()
        family.allow_children()
        self._thread = LoopThread("retoma-loop")
        self._loop = self._thread.loop

    def ask(self, what: Callable[[HintedRunner], Coroutine[Any, Any, T]]) -> T:
        """From the thread of a task; whatever interrupts it there interrupts only the waiting."""
        return _result_of(self._begin(self._asked(what)))

    def run(self, what: Callable[[HintedRunner], Coroutine[Any, Any, T]], hint: Hint) -> T:
        """As `ask`; a task that is stopped meanwhile gives its job back first."""
        asked = self._begin(self._asked(what))
        try:
            return _result_of(asked)
        except BaseException:
            if not asked.done() and self._runner is not None:
                self._loop.call_soon_threadsafe(self._runner.release, hint)
                wait_for([asked], 2 * LET_GO)
            raise

    def leave(self) -> None:
        """Finish or give back what runs, and close what is open."""
        leaving = self._begin(self._left())
        with suppress(TimeoutError):
            leaving.result(LEAVE)
        self._thread.stop(LET_GO)

    def _begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _asked(self, what: Callable[[HintedRunner], Coroutine[Any, Any, T]]) -> T:
        return await what(await self._made())

    async def _made(self) -> HintedRunner:
        async with self._making:
            if self._runner is None:
                runner = await self._home.hinted(**self._knobs)
                self._loop.add_reader(self._leaving, self._stop, runner)
                self._runner = runner
        return self._runner

    def _stop(self, runner: HintedRunner) -> None:
        self._loop.remove_reader(self._leaving)
        runner.stop()

    async def _left(self) -> None:
        if self._runner is not None:
            self._loop.remove_reader(self._leaving)
            await self._runner.stopped()
        await self._home.close()


def _result_of(asked: "Future[T]") -> T:
    """Wait for it, and come up now and then: a signal that arrives in the moment in which a thread goes to
    sleep is heard by Python only when it wakes."""
    while not wait_for([asked], LOOK).done:
        pass
    return asked.result()
