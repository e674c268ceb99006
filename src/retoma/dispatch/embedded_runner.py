"""A runner inside one Celery process: an event loop in its own thread, and a runner that processes hints.

Started by the first message, so after the fork: each process opens its own connections.
"""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from retoma.db import Database
from retoma.dispatch.shared_state import SharedState
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.loop_thread import LoopThread
from retoma.engine.ports import Clock
from retoma.engine.run.hinted import HintedRunner
from retoma.engine.run.runner_options import GRACE, LET_GO
from retoma.engine.run.running_jobs import LOOK
from retoma.engine.store.hints import Hint

T = TypeVar("T")

LEAVE = GRACE + 2 * LET_GO  # seconds that `leave` waits for the runner to stop


class RetomaApp(Protocol):
    """What a dispatcher needs of a Retoma."""

    kinds: Kinds
    dispatcher: Any
    timezone: str

    @property
    def clock(self) -> Clock: ...
    async def database(self) -> Database: ...
    async def hinted(self, **options: Any) -> HintedRunner: ...
    async def close(self) -> None: ...


class EmbeddedRunner:
    """One per process, until the process ends."""

    def __init__(self, app: RetomaApp, shared: SharedState, options: dict[str, Any]) -> None:
        self._app = app
        self._leaving = shared.leaving
        self._options = options
        self._runner: HintedRunner | None = None
        self._making = asyncio.Lock()
        shared.allow_children()
        self._thread = LoopThread("retoma-loop")
        self._loop = self._thread.loop

    def ask(self, call: Callable[[HintedRunner], Coroutine[Any, Any, T]]) -> T:
        """Run on the loop and wait, from the thread of a task. An interrupt ends only the wait."""
        return _wait_for_result(self._begin(self._with_runner(call)))

    def run(self, call: Callable[[HintedRunner], Coroutine[Any, Any, T]], hint: Hint) -> T:
        """Like `ask`, but if the task is interrupted, its job is released first."""
        future = self._begin(self._with_runner(call))
        try:
            return _wait_for_result(future)
        except BaseException:
            if not future.done() and self._runner is not None:
                self._loop.call_soon_threadsafe(self._runner.release, hint)
                wait_for([future], 2 * LET_GO)
            raise

    def leave(self) -> None:
        """Finish or release the running jobs, and close connections."""
        leaving = self._begin(self._stop_and_close())
        with suppress(TimeoutError):
            leaving.result(LEAVE)
        self._thread.stop(LET_GO)

    def _begin(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _with_runner(self, call: Callable[[HintedRunner], Coroutine[Any, Any, T]]) -> T:
        return await call(await self._get_runner())

    async def _get_runner(self) -> HintedRunner:
        async with self._making:
            if self._runner is None:
                runner = await self._app.hinted(**self._options)
                self._loop.add_reader(self._leaving, self._stop, runner)
                self._runner = runner
        return self._runner

    def _stop(self, runner: HintedRunner) -> None:
        self._loop.remove_reader(self._leaving)
        runner.stop()

    async def _stop_and_close(self) -> None:
        if self._runner is not None:
            self._loop.remove_reader(self._leaving)
            await self._runner.stopped()
        await self._app.close()


def _wait_for_result(future: "Future[T]") -> T:
    """Wait in short intervals: Python handles a signal that arrives just before the wait only after it."""
    while not wait_for([future], LOOK).done:
        pass
    return future.result()
