"""Submit more jobs than one transaction should hold, so that no other writer waits long.

The jobs come in by slices, each a short transaction. The last one accepts them all at once; then they
are moved into their batch, again by slices. Whoever finds one that was left finishes or undoes it.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from retoma.db import Database, ReplyLost, Transaction
from retoma.engine import query, store
from retoma.engine.log import get_logger
from retoma.engine.ops.leader_tasks import Fence
from retoma.engine.ports import Clock
from retoma.engine.rules.money import Money
from retoma.engine.run.submission import ACTOR, NO_ZONE, Submitted, of_batch
from retoma.engine.store import NewJob, Submission, filling
from retoma.engine.store.filling import Begun, Slice
from retoma.engine.store.submit import chunked

T = TypeVar("T")

LOOK = 0.2  # seconds between two looks at a submission that another is at work on
FIRST = 5.0  # seconds after a runner has the duty: as with retention
EVERY = 60.0  # seconds between two looks for submissions that were left
SLOW = 5.0  # seconds: a slice is not held back longer, however slowly its jobs are made
LARGE = 100_000  # jobs; more than these come in by slices

log = get_logger("retoma.filling")


class Write(Protocol):
    """Does one transaction, again where its answer was lost."""

    def __call__(self, fn: Callable[[Transaction], T], /) -> Awaitable[T]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeBatch:
    """What somebody wants to submit by slices."""

    about: Submission
    name: str
    key: str
    budget: Money | None
    jobs: Iterator[NewJob]  # read once, as far as it has been staged


class Filling:
    """Submits one large batch. `owner`: a name that nobody else has."""

    def __init__(self, database: Database, clock: Clock, owner: str, batch: LargeBatch) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner
        self._batch = batch
        self._staged = clock.now()  # when the last slice came in

    async def submit(self) -> Submitted:
        """Its jobs, all of them or none; under a key that is known, what is there already."""
        wanted = self._batch
        begun = await self._begin()
        if not begun.new:
            already = sum(1 for _ in wanted.jobs)
            return Submitted(int(begun.batch or 0), wanted.name, wanted.about.kind, 0, already)
        number = int(begun.filling or 0)
        try:
            sent = await self._stage(number)
        except Exception:
            await undo(self._write, number, self._owner)
            raise
        batch, accepted = await self._write(self._accepting(number))
        if not accepted:
            await undo(self._write, number, self._owner)
            return Submitted(batch, wanted.name, wanted.about.kind, 0, sent)
        await move(self._write, number)
        counts = await self._database.read(lambda tx: query.count_jobs(tx, batch))
        new = sum(counts.values())
        return Submitted(batch, wanted.name, wanted.about.kind, new, sent - new)

    async def _begin(self) -> Begun:
        wanted = self._batch
        text = filling.described(wanted.about, name=wanted.name, key=wanted.key)
        while True:
            begun = await self._write(
                lambda tx: filling.begin(tx, key=wanted.key, owner=self._owner, submission=text)
            )
            if begun.new:
                return begun
            if begun.batch is not None:
                if begun.filling is not None:
                    await move(self._write, begun.filling)
                return begun
            if begun.left and begun.filling is not None:
                await undo(self._write, begun.filling, self._owner)
            else:
                await self._clock.sleep(LOOK)

    async def _stage(self, number: int) -> int:
        sent, kind = 0, self._batch.about.kind
        slices = chunked(self._batch.jobs, lambda job: len(job.payload), self._late)
        for n, (_, jobs) in enumerate(slices):
            part = Slice(n, sent, jobs)
            await self._write(
                partial(filling.stage, filling=number, owner=self._owner, kind=kind, part=part)
            )
            self._staged = self._clock.now()
            sent += len(jobs)
        return sent

    def _late(self) -> bool:
        """Whether the next slice must not wait for more jobs, or the lease would end."""
        return self._clock.now() - self._staged > SLOW

    def _accepting(self, number: int) -> Callable[[Transaction], tuple[int, bool]]:
        budget = self._batch.budget

        def accept(tx: Transaction) -> tuple[int, bool]:
            batch, accepted = filling.accept(tx, number, self._owner)
            if accepted and budget is not None:
                store.budget.put_budget(tx, of_batch(batch, budget), NO_ZONE, actor=ACTOR)
            return batch, accepted

        return accept

    async def _write(self, fn: Callable[[Transaction], T]) -> T:
        """Every transaction of a submission may be done again: a lost answer is no matter."""
        while True:
            with suppress(ReplyLost):
                return await self._database.write(fn, verb="submit_many")


# — whoever submits, and whoever finds what was left —


async def undo(write: Write, number: int, owner: str) -> None:
    """Drop all that has come in of a submission that was not accepted."""
    while await write(lambda tx: filling.undo(tx, number, owner)):
        pass


async def move(write: Write, number: int) -> None:
    """Move all jobs of an accepted submission into their batch."""
    while await write(lambda tx: filling.move(tx, number)):
        pass


async def finish_left(fence: Fence) -> float:
    """Finish or undo every submission that was left; seconds until the next look."""

    async def write(fn: Callable[[Transaction], T]) -> T:
        return await fence.write(fn, verb="submit_many")

    for number, accepted in await fence.read(filling.left):
        if accepted:
            await move(write, number)
        else:
            await undo(write, number, fence.term.boot)
        log.info("batch.finished_filling" if accepted else "batch.undone", filling=number)
    return EVERY
