"""For tests of stories: a clock in hand, a runner that leaves when nothing is left, a crash on demand."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from retoma.db import crashpoint
from retoma.db.crashpoint import Harm
from retoma.engine.ports import Clock

PATIENCE = 30.0  # seconds after which a drain says that it hangs


class FakeClock(Clock):
    """Stands still until it is told to go on; whoever sleeps by it wakes then."""

    def __init__(self, now: float = 0.0) -> None:
        super().__init__()
        self._now = now
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + seconds, sleeper))
        await sleeper

    @property
    def asleep(self) -> int:
        """How many sleep by this clock."""
        return sum(not sleeper.done() for _, sleeper in self._sleepers)

    def advance(self, seconds: float) -> None:
        """It is later now. Who has slept long enough goes on once the loop gets to it."""
        self._now += seconds
        for until, sleeper in self._sleepers:
            if until <= self._now and not sleeper.done():
                sleeper.set_result(None)
        self._sleepers = [each for each in self._sleepers if not each[1].done()]


class Runs(Protocol):
    """Whatever can run jobs until none is left: a Retoma."""

    async def run(self, *, until_idle: bool = False, **knobs: Any) -> None: ...


async def drain(app: Runs, *, within: float = PATIENCE, **knobs: Any) -> None:
    """Run all that waits, its retries and snoozes too, and come back when nothing is left."""
    try:
        async with asyncio.timeout(within) as limit:
            await app.run(until_idle=True, **{"tick": 0.5, "grace": 1.0, **knobs})
    except TimeoutError:
        if limit.expired():
            raise AssertionError(f"jobs were still open after {within:g} s") from None
        raise


@contextmanager
def crash_at(point: str, harm: Harm | str = Harm.EXCEPTION, on_pass: int = 1) -> Iterator[None]:
    """Inside, this process comes to harm when it passes the point; never after."""
    crashpoint.arm(point, Harm(harm), on_pass)
    try:
        yield
    finally:
        crashpoint.disarm()
