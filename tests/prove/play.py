"""A program over one database that asks again, whatever failed, until all of it is done."""

import asyncio
import errno
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from retoma import Context, IllegalMove, Retoma, Retry, State
from retoma.db import Away, adhoc
from retoma.engine.checker.effect_ledger import Accepted, LedgerWriter
from retoma.engine.ports import Clock

T = TypeVar("T")

RETRY = Retry(attempts=3, base=0.005, cap=0.01)
KNOBS: dict[str, Any] = {"slots": 20, "tick": 0.15, "beat": 0.05, "grace": 2.0, "let_go": 1.0}
ASKED = 60  # times that a program asks again
PAUSE = 0.02
SELDOM = 10.0  # seconds between heartbeats: what a wake-up asks is asked before the next is due
LEAP = (
    20  # seconds of a second, for those who wait for a lease of 60: heartbeats go on meanwhile
)
TABLE = "CREATE TABLE IF NOT EXISTS goods (name text, n integer)"
COUNT = adhoc("SELECT name, count(*) FROM goods GROUP BY name")
PAID = {"provider": "shop", "model": "small", "usd": "0.25", "input_tokens": 7}


class LaterClock(Clock):
    """The time of this program and of its database, which may be set to later."""

    def __init__(self) -> None:
        super().__init__()
        self.later = 0

    def now(self) -> float:
        return super().now() + self.later

    def moved(self) -> int:
        return self.later * 1_000_000


async def patiently(write: Callable[[], T]) -> T:
    """What is no part of the engine is not to fail with it."""
    while True:
        try:
            return write()
        except OSError as error:
            if error.errno != errno.EMFILE:
                raise
        await asyncio.sleep(PAUSE)


@dataclass(slots=True)
class Play:
    """One run of a scenario: the program, what it wrote down outside, and what was refused."""

    url: str
    folder: Path
    clock: LaterClock = field(default_factory=LaterClock)
    app: Retoma = field(init=False)
    ledger: LedgerWriter = field(init=False)
    refused: list[str] = field(default_factory=list)
    crashes: int = 0  # runners that left with an error; their jobs are taken back
    goods: Counter[str] = field(default_factory=Counter)  # rows of the program's own table
    failures: int = 0  # that handlers raise on purpose
    left_open: int = 0  # jobs that are not to end
    jobs: int = 0
    knobs: dict[str, Any] = field(default_factory=dict)  # of its runners, besides KNOBS

    def __post_init__(self) -> None:
        self.app = Retoma(self.url, clock=self.clock)
        self.ledger = LedgerWriter(self.folder)

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Ask until there is an answer."""
        left = ASKED
        while left:
            try:
                return await call()
            except (AssertionError, IllegalMove):
                raise
            except Exception as error:  # noqa: BLE001 — a program asks again, whatever it was
                self.refused.append(f"{type(error).__name__}: {error}")
                left -= not isinstance(error, Away)  # a server starts as fast as it can
                await asyncio.sleep(PAUSE)
        raise AssertionError(f"asked {ASKED} times, at last: {self.refused[-1]}")

    async def submit(self, kind: str, payload: Any = None, **how: Any) -> int:
        self.jobs += 1
        how.setdefault("key", f"{kind} {payload}")
        job = await self.ask(partial(self.app.submit, kind, payload, **how))
        answered = Accepted(job.id, payload, f"{kind} {how['key']}")
        await patiently(lambda: self.ledger.accepted(answered))
        return job.id

    async def run(self) -> None:
        """One runner after another until nothing waits."""
        left = ASKED
        while left:
            try:
                async with self._passing_time():
                    await self.app.run(until_idle=True, **{**KNOBS, **self.knobs})
            except Exception as error:  # noqa: BLE001 — a program asks again, whatever it was
                self.refused.append(f"run: {type(error).__name__}: {error}")
                left -= not isinstance(error, Away)
                self.crashes += 1
                self.clock.later += 61
                await asyncio.sleep(PAUSE)
            else:
                return
        raise AssertionError(f"{ASKED} runners left, the last with {self.refused[-1]}")

    @asynccontextmanager
    async def _passing_time(self) -> AsyncIterator[None]:
        """Once a runner has crashed, let its lease and the next one's first lease go by.

        A runner that could not write that it left is declared lost by one that has been in touch for
        a whole lease: two minutes in the world.
        """

        async def move() -> None:
            while True:
                await asyncio.sleep(1)
                self.clock.later += LEAP

        moving = asyncio.create_task(move()) if self.crashes else None
        try:
            yield
        finally:
            if moving is not None:
                moving.cancel()

    async def work(self, ctx: Context, name: str, value: Any = None) -> Any:
        """What a step does: it says so outside."""
        await self.tell(ctx, name, "start")
        await self.tell(ctx, name, "end", value or name)
        return value or name

    async def tell(self, ctx: Context, name: str, phase: str, value: Any = None) -> None:
        """Write it into the ledger, also where no file can be opened for a moment."""
        await patiently(lambda: self.ledger.effect(ctx, name, phase, value))

    def job(self, handler: Any, **how: Any) -> None:
        async def run(ctx: Context, payload: Any) -> Any:
            return await handler(self, ctx, payload)

        self.app.job(name=handler.__name__, retry=how.pop("retry", RETRY), **how)(run)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a program does, from an empty database at the schema of today."""

    name: str
    act: Callable[[Play], Awaitable[None]]
    migrated: bool = True


async def until_claimed(play: Play, job: int) -> None:
    while (await play.ask(lambda: play.app.get(job))).state is State.WAITING:  # noqa: ASYNC110 — a row
        await asyncio.sleep(0.01)


def expectations(
    play: Play, rows: dict[str, int], ends: Counter[Any], *, again: int
) -> Iterator[str]:
    """What a scenario says itself: its own rows once, its effects at most so many times again."""
    for name, n in play.goods.items():
        if rows.get(name, 0) != n:
            yield f"goods: {name} was written {rows.get(name, 0)} times, not {n}"
    for (job, step), n in ends.items():
        if n > 1 + again:
            yield f"effects: step {step} of job {job} was done {n} times"
