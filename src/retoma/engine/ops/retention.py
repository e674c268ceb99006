"""Retention: what ended long ago goes, a chunk at a time, and never what something refers to.

A job goes whole: its row, its steps, what it shows. Its events stay for a limit of their own, longer,
and then go all at once, so that no timeline ever has a gap. Nothing goes unless a limit is set.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from retoma.db import Transaction
from retoma.engine import store
from retoma.engine.log import get_logger
from retoma.engine.ops.leader_tasks import Fence
from retoma.engine.ports import Clock
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.live_settings import Declared, Knob, KnobType
from retoma.engine.store import Bounds, Page
from retoma.engine.writing.evidence import Keeper
from retoma.words import say

T = TypeVar("T")

EVERY = 3_600.0  # seconds between two passes
LOOK = 60.0  # seconds between two looks whether somebody has changed how long things stay
FIRST = 5.0  # seconds after a runner has the duty: one that only comes by retires nothing

log = get_logger("retoma.retention")


# On screen no shorter than this: whoever slips with a unit can still take it back.
SHORTEST = 3_600.0
DONE = Knob(
    "keep_done",
    None,
    KnobType.DURATION,
    least=SHORTEST,
    why=say("How long done, skipped and canceled jobs stay. Nothing is deleted unasked."),
)
DEAD = Knob(
    "keep_dead",
    None,
    KnobType.DURATION,
    least=SHORTEST,
    why=say("How long dead letters stay; those put away go with the done."),
)
EVENTS = Knob(
    "keep_events",
    None,
    KnobType.DURATION,
    least=SHORTEST,
    why=say("How long the events of deleted jobs and the audit log stay."),
)
KNOBS = (DONE, DEAD, EVENTS)


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


def go_together(name: str, knobs: Mapping[str, Any]) -> None:
    """BadInput where one of them does not go with the others."""
    if name in {each.name for each in KNOBS}:
        _keep_of(knobs)


def _keep_of(knobs: Mapping[str, Any], reuse: float | None = None) -> Keep:
    return Keep(
        done=knobs[DONE.name],
        dead=knobs[DEAD.name],
        events=knobs[EVENTS.name],
        reuse=reuse,
    )


@dataclass(frozen=True, slots=True)
class Retired:
    """What one pass deleted."""

    jobs: int = 0
    batches: int = 0
    events: int = 0
    evidence: int = 0  # bytes that no job shows any more
    own: int = (
        0  # rows of runners, minutes, ticks and days of costs that nobody asks for any more
    )
    reuse: int = 0  # results that are too old to be used again


class Writes(Protocol):
    """Where a pass writes: under a duty, or at somebody's own request."""

    async def write(self, fn: Callable[[Transaction], T], *, verb: str) -> T: ...

    async def read(self, fn: Callable[[Transaction], T]) -> T: ...


class Retention:
    """One pass after another, each from the oldest job on."""

    def __init__(
        self,
        keep: Keep,
        actor: str,
        keeper: Keeper | None = None,
        fixed: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """`fixed`: knobs that the environment has set."""
        self._keep = keep
        self._actor = actor
        self._keeper = keeper or Keeper()
        told = {each.name: getattr(keep, each.name.removeprefix("keep_")) for each in KNOBS}
        given = {name: length for name, length in told.items() if length is not None}
        self._knobs = Declared(KNOBS, fixed={**fixed, **given})

    async def chore(self, fence: Fence) -> float:
        """By what was given to this process, and else by what people have set."""
        keep = await fence.read(self.now)
        if keep is not None:
            await Retention(keep, self._actor, self._keeper).run_once(fence)
        return EVERY

    def now(self, tx: Transaction) -> Keep | None:
        """How long things stay; None: what is said here and what is set for all contradict each
        other, and nothing goes."""
        try:
            return _keep_of(store.knobs.values(tx, self._knobs), self._keep.reuse)
        except BadInput as error:
            log.warning("retention.contradiction", told=str(error))
            return None

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
        await place.write(partial(store.keep_pass, retired=asdict(retired)), verb="retire")
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
        while await place.write(partial(store.retire_audit, bounds=bounds), verb="retire"):
            pass
        await self._alerts(place, bounds)
        return gone

    async def _alerts(self, place: Writes, bounds: Bounds) -> None:
        page = Page([], 0, True)
        while page.more:
            bite = partial(store.retire_alerts, bounds=bounds, after=page.last)
            page = await place.write(bite, verb="retire")

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


class Watched:
    """The duty: a pass now and then, and one as soon as how long things stay has changed."""

    def __init__(self, retention: Retention, clock: Clock) -> None:
        self._retention = retention
        self._clock = clock
        self._keep: Keep | None = None
        self._next = 0.0

    async def chore(self, fence: Fence) -> float:
        keep = await fence.read(self._retention.now)
        if keep is not None and (keep != self._keep or self._clock.now() >= self._next):
            await self._retention.chore(fence)
            self._keep, self._next = keep, self._clock.now() + EVERY
        return LOOK


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
