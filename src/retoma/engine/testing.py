"""For tests of stories: a clock in hand, a runner that leaves when nothing is left, a crash on demand."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from retoma.db import Database, Transaction, adhoc, crashpoint
from retoma.db.crashpoint import Harm
from retoma.engine import store
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.ports import Clock

PATIENCE = 30.0  # seconds after which a drain says that it hangs
# Somebody may stop at a breakpoint: then the loop is held for as long as he looks.
DRAINING = {"tick": 0.5, "grace": 1.0, "loop_limit": 0.0}
QUIET = 10  # looks in a row at which nobody slept: then nobody watches
OVER = 50  # looks in a row at which all has ended, and the runner has not left
LOOK = 0.01  # seconds between two looks whether everybody only waits


class FakeClock(Clock):
    """Stands still until it is told to go on; whoever sleeps by it wakes then.

    `Retoma(url, clock=FakeClock())`: the time of the database moves with it, for this app alone.
    """

    def __init__(self, now: float = 0.0) -> None:
        super().__init__()
        self._began = now
        self._now = now
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    def moved(self) -> int:
        return round((self._now - self._began) * 1_000_000)

    async def sleep(self, seconds: float) -> None:
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + seconds, sleeper))
        await sleeper

    @property
    def asleep(self) -> int:
        """How many sleep by this clock."""
        return sum(not sleeper.done() for _, sleeper in self._sleepers)

    @property
    def next_wake(self) -> float | None:
        """Seconds until the first of them wants to wake."""
        waits = [until - self._now for until, sleeper in self._sleepers if not sleeper.done()]
        return min(waits, default=None)

    def advance(self, seconds: float) -> None:
        """It is later now. Who has slept long enough goes on once the loop gets to it."""
        self._now += seconds
        for until, sleeper in self._sleepers:
            if until <= self._now and not sleeper.done():
                sleeper.set_result(None)
        self._sleepers = [each for each in self._sleepers if not each[1].done()]


class App(Protocol):
    """Whatever can run jobs until none is left: a Retoma."""

    kinds: Kinds

    @property
    def clock(self) -> Clock: ...
    async def database(self) -> Database: ...
    async def run(self, *, until_idle: bool = False, **knobs: Any) -> None: ...


async def drain(app: App, *, within: float = PATIENCE, **knobs: Any) -> None:
    """Run all that waits, its retries and snoozes too, and come back when nothing is left.

    With a `FakeClock` nobody waits for them: it is set to whatever is due next.
    """
    skipping = (
        asyncio.create_task(_skip_waits(app, app.clock))
        if isinstance(app.clock, FakeClock)
        else None
    )
    try:
        async with asyncio.timeout(within) as limit:
            await app.run(until_idle=True, **{**DRAINING, **knobs})
            if isinstance(app.clock, FakeClock):
                await _wake_watchers(app.clock)
    except TimeoutError:
        if limit.expired():
            raise AssertionError(f"jobs were still open after {within:g} s") from None
        raise
    finally:
        if skipping is not None:
            skipping.cancel()
            with suppress(asyncio.CancelledError):
                await skipping


@contextmanager
def crash_at(point: str, harm: Harm | str = Harm.EXCEPTION, on_pass: int = 1) -> Iterator[None]:
    """Inside, this process comes to harm when it passes the point; never after.

    A block that ends well without having passed it has proved nothing, and says so.
    """
    crashpoint.arm(point, Harm(harm), on_pass)
    try:
        yield
        if crashpoint.armed(point):
            raise AssertionError(f"nothing passed {point} {on_pass} times: no harm was done")
    finally:
        crashpoint.disarm()


async def _wake_watchers(clock: FakeClock) -> None:
    """Whoever watched the work by this clock looks once more, now that it is done."""
    real, quiet = Clock(), 0
    while quiet < QUIET:
        await real.sleep(LOOK)
        wait = clock.next_wake
        quiet = quiet + 1 if wait is None else 0
        if wait is not None:
            clock.advance(wait)


async def _skip_waits(app: App, clock: FakeClock) -> None:
    database, real, over = await app.database(), Clock(), 0
    while True:
        await real.sleep(LOOK)
        wait = await database.read(lambda tx: _until_due(tx, app.kinds.queues()))
        if wait is None:
            wait = clock.next_wake
        over = over + 1 if wait is None and await database.read(_all_ended) else 0
        if over >= OVER:  # somebody beside ended the last: its runner sees that by its tick
            wait = DRAINING["tick"]
        if wait is not None:
            # A little at least: the runner's own look around is due by this clock too.
            clock.advance(max(wait, LOOK))
            await database.write(_wake_all, verb="test")


def _until_due(tx: Transaction, queues: Sequence[str]) -> float | None:
    """Seconds until something is due, where nothing is at work and nothing could be."""
    return None if tx.one(AT_WORK) else store.next_due(tx, queues)


def _all_ended(tx: Transaction) -> bool:
    return tx.one(OPEN) is None


def _wake_all(tx: Transaction) -> None:
    tx.one(AT_WORK)
    tx.ring("look")


OPEN = adhoc("SELECT 1 FROM jobs WHERE state IN ('waiting', 'running') LIMIT 1")
AT_WORK = adhoc(
    "SELECT 1 FROM jobs WHERE state = 'running'"
    " OR state = 'waiting' AND turn IS NOT NULL AND aside IS NULL LIMIT 1"
)
