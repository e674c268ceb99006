"""An event loop with a virtual clock that runs many hosts in one thread, in an order a seed decides.

Each thread of a host keeps the order of its own callbacks, as in a real process; which thread goes next is
chance. Time passes when nobody has anything to do, and a little with each callback. A killed host never runs again; a stopped host or
thread keeps its callbacks until it is continued.
"""

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from inspect import CORO_CLOSED, getcoroutinestate, iscoroutine
from itertools import count
from random import Random
from typing import Any

MOST_CALLBACKS = 300_000  # of one universe; more than that is a loop that never rests


MOST_ENDINGS = 50  # times that what clears up may wait
CALLBACK = 2e-6  # seconds that a callback takes: without it, whoever polls would wait for ever


class Host:
    """One simulated process."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.pid = pid
        self.dead = False
        self.stopped = False
        self.threads: list[Thread] = []

    def __repr__(self) -> str:
        return f"Host({self.name!r}, pid={self.pid})"

    def stop(self) -> None:
        """As SIGSTOP: its callbacks wait until it goes on."""
        self.stopped = True
        for thread in self.threads:
            thread.line_up()

    def go_on(self) -> None:
        self.stopped = False
        for thread in self.threads:
            thread.line_up()


class Callback:
    """A callback that waits for its turn or its time: what the loop needs of `asyncio.Handle`."""

    __slots__ = ("_args", "_call", "_canceled", "_context")

    def __init__(self, call: Any, args: tuple[Any, ...], context: Context) -> None:
        self._call = call
        self._args = args
        self._context = context
        self._canceled = False

    def cancel(self) -> None:
        self._canceled = True
        self._call, self._args = None, ()  # what it would have used can be forgotten

    def cancelled(self) -> bool:
        return self._canceled

    def run(self) -> None:
        self._context.run(self._call, *self._args)


class Thread:
    """One thread of a host: its callbacks wait here, in their order."""

    __slots__ = ("_line", "_lined_up", "held", "host", "ready")

    def __init__(self, host: Host, line: "list[Thread]") -> None:
        self.host = host
        self.ready: deque[Callback] = deque()
        self.held = False  # by a callback of its own that does not return
        self._line = line  # of all threads that have something to do and may
        self._lined_up = False
        host.threads.append(self)

    def hold(self) -> None:
        self.held = True
        self.line_up()

    def let_go(self) -> None:
        self.held = False
        self.line_up()

    def add(self, callback: Callback) -> None:
        if not self.host.dead:
            self.ready.append(callback)
            if not self._lined_up:
                self.line_up()

    def take(self) -> Callback:
        """The first of its callbacks; one that has no more leaves the line."""
        callback = self.ready.popleft()
        if not self.ready:
            self._lined_up = False
            self._line.remove(self)
        return callback

    def line_up(self) -> None:
        """Stand among those who may go next, or leave them."""
        host = self.host
        able = bool(self.ready) and not (self.held or host.stopped or host.dead)
        if able is not self._lined_up:
            self._lined_up = able
            if able:
                self._line.append(self)
            else:
                self._line.remove(self)


_THREAD: ContextVar[Thread] = ContextVar("retoma_simulated_thread")


class NeverEnds(Exception):
    """A universe did not come to rest within its bound of callbacks or of virtual time."""


class SimulatedLoop(asyncio.AbstractEventLoop):
    """Runs the callbacks of all threads; `rng` decides whose is next."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._now = 0.0
        self._timers: list[tuple[float, int, Callback, Thread]] = []
        self._numbers = count()
        self._pids = count(1000)
        self.callbacks = 0
        self._running = self._closed = False
        self._able: list[Thread] = []  # those that may go next
        self._outside = self.new_thread(self.new_host("outside"))
        self.outside = self.context_of(self._outside)  # of nobody's callbacks
        # By the host that runs them: a pending task of a dead host stays as it is.
        self._tasks: list[tuple[asyncio.Task[Any], Host]] = []
        self.errors: list[dict[str, Any]] = []

    # — hosts and threads —

    def new_host(self, name: str) -> Host:
        return Host(name, next(self._pids))

    def new_thread(self, host: Host) -> Thread:
        return Thread(host, self._able)

    def current_thread(self) -> Thread:
        return _THREAD.get(self._outside)

    def start_on(self, thread: Thread, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run a coroutine as a task of `thread`; whatever it starts runs there too."""
        return self.create_task(work, context=self.context_of(thread))

    def context_of(self, thread: Thread) -> Context:
        context = copy_context()
        context.run(_THREAD.set, thread)
        return context

    def kill(self, host: Host) -> None:
        """As SIGKILL: nothing of it runs any more, not even its `finally` blocks."""
        host.dead = True
        for thread in host.threads:
            thread.line_up()

    def ignore_errors_of(self, host: Host) -> None:
        """Report no error of its tasks: it was killed before it could retrieve them."""
        for task, of in self._tasks:
            if of is host and task.done():
                task._log_traceback = False  # noqa: SLF001 — as `Task.exception` does

    def forget_done(self) -> None:
        """Drop tasks that have ended. One whose error nobody retrieved reports it when it is collected."""
        self._tasks = [each for each in self._tasks if not each[0].done()]

    # — what asyncio asks of a loop —

    def time(self) -> float:
        return self._now

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> Callback:
        own = copy_context() if context is None else context
        made = Callback(callback, args, own)
        own.get(_THREAD, self._outside).add(made)
        return made

    # All threads are simulated in one.
    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Callback:
        # Repeats `call_at` instead of calling it: each universe comes here some thousand times.
        own = copy_context() if context is None else context
        timer = Callback(callback, args, own)
        thread = own.get(_THREAD, self._outside)
        if not thread.host.dead:
            heapq.heappush(
                self._timers, (self._now + delay, next(self._numbers), timer, thread)
            )
        return timer

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> Callback:
        own = copy_context() if context is None else context
        timer = Callback(callback, args, own)
        thread = own.get(_THREAD, self._outside)
        if not thread.host.dead:
            heapq.heappush(self._timers, (when, next(self._numbers), timer, thread))
        return timer

    async def pause(self, seconds: float) -> None:
        """Do what `asyncio.sleep` does with fewer calls; the hosts of a universe pause at every query."""
        over: asyncio.Future[None] = asyncio.Future(loop=self)
        timer = self.call_later(seconds, _end_pause, over)
        try:
            await over
        finally:
            timer.cancel()

    def create_future(self) -> "asyncio.Future[Any]":
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Any, *, name: Any = None, context: Any = None, **_: Any
    ) -> "asyncio.Task[Any]":
        if self._closed:  # what dead hosts leave behind is cleared up: nothing begins any more
            coro.close()
            raise RuntimeError("the universe is over")
        task: asyncio.Task[Any] = asyncio.Task(coro, loop=self, name=name, context=context)
        thread = self.current_thread() if context is None else context.get(_THREAD)
        self._tasks.append((task, (thread or self._outside).host))
        return task

    def run_in_executor(  # type: ignore[override]
        self, _: Any, func: Any, *args: Any
    ) -> "asyncio.Future[Any]":
        """As a thread that is done at some later moment."""
        future = self.create_future()

        def work() -> None:
            if future.done():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:  # noqa: BLE001 — it belongs to whoever waits
                future.set_exception(error)

        self.call_later(self._rng.random() * 0.01, work)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.errors.append(context)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return self._running

    def is_closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """Forget everything. What dead hosts were in the middle of is never finished."""
        self._closed = True
        self._timers.clear()
        self._able.clear()
        events._set_running_loop(self)  # noqa: SLF001 — what is cleared up must find no other
        try:
            for task, _ in self._tasks:
                if not task.done():
                    _end(task.get_coro())
        finally:
            events._set_running_loop(None)  # noqa: SLF001 — likewise
        for task, _ in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 — it died with its host
        self._tasks.clear()

    # — running —

    def run_until_complete(self, future: Any, *, until: float = float("inf")) -> Any:
        """Run until `future` is done; NeverEnds where virtual time passes `until` before that."""
        main = future if isinstance(future, asyncio.Future) else self.create_task(future)
        events._set_running_loop(self)  # noqa: SLF001 — documented, for those who write a loop
        self._running = True
        try:
            self._run_until(main, until)
        finally:
            self._running = False
            events._set_running_loop(None)  # noqa: SLF001 — likewise
        return main.result()

    def _run_until(self, main: "asyncio.Future[Any]", until: float) -> None:
        """One loop without helpers: it turns thousands of times in each universe."""
        timers, able, chance, pop = self._timers, self._able, self._rng.random, heapq.heappop
        while not main.done():
            self.callbacks += 1
            if self.callbacks > MOST_CALLBACKS:
                raise NeverEnds(
                    f"{MOST_CALLBACKS:,} callbacks and no end, at {self._now:.1f} s"
                )
            while timers and timers[0][0] <= self._now:
                _, _, timer, thread = pop(timers)
                if not timer.cancelled():
                    thread.add(timer)
            if not able:
                self._let_time_pass(until)
                continue
            thread = able[0] if len(able) == 1 else able[int(chance() * len(able))]
            callback = thread.take()
            self._now += CALLBACK
            if not callback.cancelled():
                try:
                    callback.run()
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 — as every loop: reported, not raised
                    self.call_exception_handler(
                        {"message": "a callback failed", "exception": error}
                    )

    def _let_time_pass(self, until: float) -> None:
        timers = self._timers
        while timers and (timers[0][2].cancelled() or timers[0][3].host.dead):
            heapq.heappop(timers)
        if not timers:
            raise NeverEnds(f"everybody waits and nothing is due, at {self._now:.1f} s")
        self._now = max(self._now, timers[0][0])
        if self._now > until:
            raise NeverEnds(f"not at rest after {until:g} s of virtual time")


def _end_pause(over: "asyncio.Future[None]") -> None:
    if not over.done():
        over.set_result(None)


def _end(work: Any) -> None:
    """End what its host left in the middle, here and not whenever it is collected."""
    for _ in range(MOST_ENDINGS):
        if not iscoroutine(work) or getcoroutinestate(work) == CORO_CLOSED:
            return
        with suppress(
            Exception
        ):  # it may wait again while it clears up: then it is ended there
            work.close()


def new_loop(rng: Random) -> SimulatedLoop:
    """Make a loop; what it leaves out (sockets, signals, processes) no simulation may touch."""
    return SimulatedLoop(rng)  # type: ignore[abstract]
