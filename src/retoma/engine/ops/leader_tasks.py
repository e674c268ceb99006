"""Duties: what the whole house needs and one runner at a time does, beside its loop.

A duty is a row with a holder and a term. Who is alive takes it, on a tick, from one who is not; the
term is then one higher. Every transaction done under a duty asks for its boot and term first, so
that a holder who slept through its own end changes nothing.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from retoma.db import Database, DatabaseError, Transaction
from retoma.engine import store
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.store import Around, Taken, Term

T = TypeVar("T")

NEVER = math.inf  # seconds: not before a tick says that something waits
AGAIN = 5.0  # seconds until a duty that went wrong is tried once more

log = get_logger("retoma.duty")


class Duty(StrEnum):
    """What there is to be done for the engine; each application with alerts has one besides."""

    ALERTS = "alerts"
    FILL = "fill"
    FOLD = "fold"
    NOTIFY = "notify"
    RETENTION = "retention"
    SCHEDULE = "schedule"


class DutyLost(Exception):
    """Another boot has the duty, or this one is over; nothing was changed."""


class Fence:
    """Writes under one term of a duty, and under no other."""

    def __init__(self, database: Database, term: Term) -> None:
        self._database = database
        self.term = term

    async def write(self, fn: Callable[[Transaction], T], *, verb: str) -> T:
        """One transaction, if this term still holds when it begins; it then holds to its end."""

        def fenced(tx: Transaction) -> T:
            if not store.holds_duty(tx, self.term):
                raise DutyLost(f"{self.term.duty}: term {self.term.number} is over")
            return fn(tx)

        return await self._database.write(fenced, verb=verb)

    async def read(self, fn: Callable[[Transaction], T]) -> T:
        return await self._database.read(fn)


# Does what is due; in how many seconds it wants to be done again.
Chore = Callable[[Fence], Awaitable[float]]


@dataclass(slots=True, eq=False)
class _Held:
    term: Term
    next: float
    task: "asyncio.Task[None] | None" = None


class Duties:
    """The duties of one boot: taken on its tick, done beside its loop."""

    def __init__(
        self,
        database: Database,
        boot: str,
        clock: Clock,
        chores: Mapping[str, Chore],
        first: Mapping[str, float],
        wake: Callable[[], None],
    ) -> None:
        self._database = database
        self._boot = boot
        self._clock = clock
        self._chores = chores
        self._first = first
        self._wake = wake
        self._seen: list[Taken] = []
        self._held: dict[str, _Held] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, tx: Transaction) -> None:
        """In the transaction of a tick, before it touches anything else: duties are locked first."""
        self._seen = store.take_duties(tx, self._boot, self._chores)

    def took(self) -> None:
        """That transaction is committed."""
        now = self._clock.now()
        before = self._held
        self._held = {taken.term.duty: self._hold(taken, before, now) for taken in self._seen}
        self._seen = []

    def _hold(self, taken: Taken, before: Mapping[str, _Held], now: float) -> _Held:
        held = before.get(taken.term.duty)
        if held is None or held.term != taken.term:
            log.info("duty.taken", duty=taken.term.duty, runner=self._boot)
            held = _Held(taken.term, now + self._first.get(taken.term.duty, NEVER))
        if taken.due is not None:
            held.next = min(held.next, now + taken.due)
        return held

    def leave_out(self, duty: Duty) -> None:
        """Never take this duty: another runner may, which has the right to do it."""
        self._chores = {name: chore for name, chore in self._chores.items() if name != duty}

    @property
    def names(self) -> list[str]:
        """What this code knows to do."""
        return list(self._chores)

    def may_take(self, around: Around) -> bool:
        """Whether one of them is nobody's, or the database has another mind of who holds what."""
        return around.duty_free or around.held != len(self._held)

    def want(self, due: Mapping[str, float | None]) -> None:
        """When those of ours want to be done, as a look around has found."""
        now = self._clock.now()
        for name, held in self._held.items():
            after = due.get(name)
            if after is not None:
                held.next = min(held.next, now + max(after, 0.0))

    def holds(self, duty: Duty) -> bool:
        return duty in self._held

    def next(self) -> float:
        """When the next of them wants to be done, by our clock."""
        return min((h.next for h in self._held.values() if h.task is None), default=NEVER)

    def begin(self) -> None:
        """Start what is due and not being done already."""
        now = self._clock.now()
        for held in self._held.values():
            if held.task is None and held.next <= now:
                held.next = NEVER
                held.task = asyncio.get_running_loop().create_task(self._do(held))
                self._tasks.add(held.task)
                held.task.add_done_callback(self._tasks.discard)

    async def done(self, duty: Duty) -> bool:
        """Wait for the duty, if it is being done or due; whether it was."""
        self.begin()
        held = self._held.get(duty)
        if held is None or held.task is None:
            return False
        await asyncio.wait([held.task])
        return True

    async def stop(self) -> None:
        self._held = {}
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _do(self, held: _Held) -> None:
        duty = held.term.duty
        again = AGAIN
        try:
            again = await self._chores[duty](Fence(self._database, held.term))
        except DutyLost as error:
            log.info("duty.lost", duty=duty, runner=self._boot, told=str(error))
            again = NEVER  # the next tick says whether it is ours again
        except DatabaseError as error:
            log.warning("duty.trouble", duty=duty, runner=self._boot, error=str(error))
        except Exception:
            log.exception("duty.trouble", duty=duty, runner=self._boot)
        finally:
            held.next = min(held.next, self._clock.now() + again)
            held.task = None
            self._wake()
