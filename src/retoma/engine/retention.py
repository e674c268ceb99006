"""Retention: what ended long ago goes, a chunk at a time, and never what something refers to.

A job goes whole: its row, its steps, what it shows. Its events stay for a limit of their own, longer,
and then go all at once, so that no timeline ever has a gap. Nothing goes unless a limit is set.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Protocol, TypeVar

from retoma.db import Transaction
from retoma.engine import store
from retoma.engine.duration import seconds
from retoma.engine.duty import Fence
from retoma.engine.errors import BadInput
from retoma.engine.evidence import Keeper
from retoma.engine.log import get_logger
from retoma.engine.store import Bounds, Page
from retoma.words import say

T = TypeVar("T")

EVERY = 3_600.0  # seconds between two passes
FIRST = 5.0  # seconds after a runner has the duty: one that only comes by retires nothing

log = get_logger("retoma.retention")


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How long ended jobs stay, in seconds; None: for ever."""

    done: float | None = None  # done, skipped and canceled; batches without jobs too
    dead: float | None = None
    events: float | None = None  # of jobs that are gone, and the audit log
    reuse: float | None = None  # results that other jobs may use again

    def __post_init__(self) -> None:
        for name in ("done", "dead", "events", "reuse"):
            length = getattr(self, name)
            if length is not None and not seconds(length):
                raise BadInput(
                    say(
                        "keep {name}: a job that ends must stay for longer than nothing",
                        name=name,
                    )
                )
        longest = max(self.done or 0.0, self.dead or 0.0)
        if self.events is not None and self.events < longest:
            raise BadInput(
                say(
                    "events tell of jobs that are gone: keep them at least as long as"
                    " jobs, not {events:g} s against {longest:g} s",
                    events=self.events,
                    longest=longest,
                )
            )


FOREVER = Keep()


@dataclass(frozen=True, slots=True)
class Retired:
    """What one pass deleted."""

    jobs: int = 0
    batches: int = 0
    events: int = 0
    evidence: int = 0  # bytes that no job shows any more
    own: int = 0  # rows of runners, minutes and ticks that nobody asks for any more
    reuse: int = 0  # results that are too old to be used again


class Writes(Protocol):
    """Where a pass writes: under a duty, or at somebody's own request."""

    async def write(self, fn: Callable[[Transaction], T], *, verb: str) -> T: ...

    async def read(self, fn: Callable[[Transaction], T]) -> T: ...


class Retention:
    """One pass after another, each from the oldest job on."""

    def __init__(self, keep: Keep, actor: str, keeper: Keeper | None = None) -> None:
        self._keep = keep
        self._actor = actor
        self._keeper = keeper or Keeper()

    async def chore(self, fence: Fence) -> float:
        await self.run_once(fence)
        return EVERY

    async def run_once(self, place: Writes) -> Retired:
        """Delete all that is old now."""
        keep = self._keep
        bounds = await place.read(
            lambda tx: store.bounds(tx, done=keep.done, dead=keep.dead, events=keep.events)
        )
        retired = Retired(
            jobs=await self._jobs(place, bounds),
            batches=await self._batches(place, bounds),
            events=await self._events(place, bounds),
            evidence=await self._keeper.collect(place),
            own=await place.write(store.retire_own, verb="retire"),
            reuse=await self._reuse(place),
        )
        if retired != Retired():
            log.info("retention.passed", **asdict(retired))
        return retired

    async def _jobs(self, place: Writes, bounds: Bounds) -> int:
        if self._keep.done is None and self._keep.dead is None:
            return 0

        def go(jobs: tuple[int, ...]) -> Callable[[Transaction], int]:
            return lambda tx: store.retire_jobs(tx, bounds, jobs, actor=self._actor)

        return await _walk(place, lambda tx, after: store.old_jobs(tx, bounds, after), go)

    async def _reuse(self, place: Writes) -> int:
        age, actor = self._keep.reuse, self._actor
        gone = 0
        while age is not None:
            bite = await place.write(
                partial(store.reuse.retire, age=age, actor=actor), verb="retire"
            )
            gone += bite
            if bite < store.reuse.BITE:
                break
        return gone

    async def _events(self, place: Writes, bounds: Bounds) -> int:
        if self._keep.events is None:
            return 0

        def go(jobs: tuple[int, ...]) -> Callable[[Transaction], int]:
            return lambda tx: store.retire_events(tx, bounds, jobs, actor=self._actor)

        gone = await _walk(place, lambda tx, after: store.old_events(tx, bounds, after), go)
        for retire in (store.retire_audit, store.retire_alerts):
            while await place.write(partial(retire, bounds=bounds), verb="retire"):
                pass
        return gone

    async def _batches(self, place: Writes, bounds: Bounds) -> int:
        if self._keep.done is None:
            return 0
        # A batch whose last move is not folded stays: its ledger would come back without it.
        await place.write(store.fold_tallies, verb="fold")
        gone, page = 0, Page([], 0, True)
        while page.more:
            bite = partial(
                store.retire_batches, bounds=bounds, after=page.last, actor=self._actor
            )
            page = await place.write(bite, verb="retire")
            gone += len(page.old)
        return gone


async def _walk(
    place: Writes,
    look: Callable[[Transaction, int], Page],
    go: Callable[[tuple[int, ...]], Callable[[Transaction], int]],
) -> int:
    """Page by page; of each page what is old goes in chunks, a transaction each."""
    gone, page = 0, Page([], 0, True)
    while page.more:
        after = page.last

        def turned(tx: Transaction, after: int = after) -> Page:
            return look(tx, after)

        page = await place.read(turned)
        for chunk in _chunks(page.old):
            gone += await place.write(go(chunk), verb="retire")
    return gone


def _chunks(ids: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for first in range(0, len(ids), store.RETIRE_CHUNK):
        yield tuple(ids[first : first + store.RETIRE_CHUNK])
