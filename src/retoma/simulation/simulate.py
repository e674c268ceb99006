"""Run a scenario in many universes and report the first one in which a promise is broken.

def scenario() -> Scenario: ...           # a fresh app, fresh doubles of your services, a fresh ledger
simulate(scenario, universes=500)         # raises Violated, with the seed that replays it
"""

import asyncio
import gc
import logging
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from retoma.db import DatabaseError, Transaction, adhoc
from retoma.db.simulated import Content
from retoma.engine.checker import check
from retoma.engine.checker.effect_ledger import Accepted, Effect, Ledger
from retoma.engine.rules.errors import Unsure
from retoma.engine.store import fold_tallies
from retoma.library import Retoma
from retoma.simulation.faults import Fault, Faults
from retoma.simulation.loop import NeverEnds
from retoma.simulation.universe import Line, Universe, make_file

RUNNERS = 3
LOOK = 1.0  # seconds of virtual time between two looks whether all has ended
LAST = 60  # lines of a trace that a report shows
SHRINKS = 200  # universes that shrinking may take
ENDS_WITHIN = 4 * 3600.0

JOBS = adhoc("SELECT count(*) FROM jobs")
OPEN = adhoc("SELECT id, kind, state FROM jobs WHERE state IN ('waiting', 'running') LIMIT 20")


@dataclass(slots=True)
class SimulatedLedger:
    """What handlers really did, written by them as it happens."""

    effects: list[Effect] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)

    def read(self) -> Ledger:
        ledger = Ledger({}, {})
        for effect in self.effects:
            ledger.effects.setdefault(effect.job, []).append(effect)  # type: ignore[attr-defined]
        for each in self.accepted:
            ledger.accepted.setdefault(each.job, []).append(each)  # type: ignore[attr-defined]
        return ledger


@dataclass(slots=True, kw_only=True)
class Scenario:
    """What happens in one universe, made anew for each.

    `submit` and `act` run on hosts whose calls fail as those of the runners do; they are given the app of
    that host. `submit` is called again where the database kept it from its end: give what it submits
    keys. `verify` is called when all has ended: what it raises or returns is a violation.
    """

    app: Retoma
    submit: Callable[[Retoma], Coroutine[Any, Any, Any]]
    act: Callable[[Retoma], Coroutine[Any, Any, Any]] | None = None
    verify: Callable[[], Sequence[str] | None] = lambda: None
    ledger: SimulatedLedger = field(default_factory=SimulatedLedger)
    enter: Callable[[Universe], None] = lambda _: None  # before anything happens
    # Seconds of virtual time in which every job must end once nothing goes wrong any more.
    ends_within: float = ENDS_WITHIN


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one universe ended."""

    seed: int | str
    violations: tuple[str, ...]
    faults: tuple[Fault, ...]  # those that happened
    zombies: int  # hosts that went on after their lease had ended
    trace: tuple[Line, ...]
    jobs: int
    virtual: float  # seconds
    quiet: float  # of them after the last fault, until all had ended and left
    callbacks: int


class Violated(AssertionError):
    """A promise was broken in a universe; its message has the seed and the shortest trace found."""

    def __init__(self, outcome: Outcome, command: str) -> None:
        self.outcome = outcome
        lines = outcome.trace[-LAST:]
        left_out = len(outcome.trace) - len(lines)
        story = (
            [f"  … {left_out} lines before", *map(str, lines)] if left_out else map(str, lines)
        )
        super().__init__(
            "\n".join(
                (
                    f"universe {outcome.seed}: {len(outcome.violations)} violations",
                    *(f"  - {each}" for each in outcome.violations),
                    f"with {len(outcome.faults)} faults; what happened:",
                    *story,
                    f"replay: {command}",
                )
            )
        )


def simulate(
    scenario: Callable[[], Scenario],
    *,
    universes: int = 200,
    seed: int = 0,
    runners: int = RUNNERS,
    faults: Faults | None = None,
    command: str = "simulate(scenario, seed={seed}, universes=1)",
) -> int:
    """Run the scenario in universes `seed`, `seed + 1`, …; how many jobs ended in them.

    Raises `Violated` at the first universe in which the engine's checker or the scenario finds a
    violation, after making its list of faults as short as it can.
    """
    file = make_file(scenario().app)
    jobs = 0
    how: dict[str, Any] = {"file": file, "runners": runners, "faults": faults}
    with quiet():
        for number in range(seed, seed + universes):
            outcome = run_universe(scenario, number, **how)
            if outcome.violations:
                raise Violated(shrink(scenario, outcome, **how), command.format(seed=number))
            jobs += outcome.jobs
    return jobs


def run_universe(
    scenario: Callable[[], Scenario],
    seed: int | str,
    *,
    file: Content,
    runners: int = RUNNERS,
    faults: Faults | None = None,
    only: frozenset[Fault] | None = None,
) -> Outcome:
    """Run one universe to its end, and check it."""
    story = scenario()
    universe = Universe(story.app, seed, file, faults=faults, only=only)
    story.enter(universe)
    found: list[str] = []
    try:
        universe.loop.run_until_complete(
            _live(universe, story, runners), until=universe.planned.span + story.ends_within
        )
    except NeverEnds as error:
        found += [f"liveness: {error}", *_still_open(universe)]
    except Exception as error:  # noqa: BLE001 — a scenario that fails is a finding too
        found.append(f"scenario: {type(error).__name__}: {error}")
    if not found:
        found += _checked(universe, story)
    outcome = Outcome(
        seed,
        tuple(found),
        tuple(universe.chances.happened),
        universe.zombies,
        tuple(universe.trace),
        _count_jobs(universe),
        universe.loop.time(),
        max(universe.loop.time() - universe.planned.span, 0.0),
        universe.loop.callbacks,
    )
    universe.loop.close()
    file.clock = lambda: 0.0  # by which it would keep the universe in memory
    return outcome


def shrink(scenario: Callable[[], Scenario], outcome: Outcome, **how: Any) -> Outcome:
    """Leave out faults as long as the universe is still violated: those of a kind, of a host, then some."""
    best, tries = outcome, 0

    def without(left_out: Iterable[Fault]) -> bool:
        """Whether it is violated without these too; it is the best then."""
        nonlocal best, tries
        kept = set(best.faults) - set(left_out)
        if len(kept) == len(best.faults) or tries >= SHRINKS:
            return False
        tries += 1
        candidate = run_universe(scenario, outcome.seed, **how, only=frozenset(kept))
        if candidate.violations:
            best = candidate
        return bool(candidate.violations)

    for kind in sorted({each.kind for each in best.faults}):
        without(each for each in best.faults if each.kind == kind)
    for host in sorted({each.host for each in best.faults}):
        without(each for each in best.faults if each.host == host)
    size = max(len(best.faults) // 2, 1)
    while size and tries < SHRINKS:
        starts = range(0, len(best.faults), size)
        if any(without(best.faults[start : start + size]) for start in starts):
            size = min(size, max(len(best.faults) // 2, 1))
        else:
            size //= 2
    return best


async def _live(universe: Universe, story: Scenario, runners: int) -> None:
    client = universe.new_member("client")
    keeping = universe.loop.create_task(universe.keep_running(runners))
    trouble = universe.loop.create_task(universe.trouble())
    work = [universe.loop.start_on(client.thread, _submit(story, client.own_app))]
    if story.act is not None:
        operator = universe.new_member("operator")
        work.append(universe.loop.start_on(operator.thread, story.act(operator.own_app)))
    await asyncio.gather(trouble, *work)
    while not _quiet(universe):  # noqa: ASYNC110 — by virtual time
        await asyncio.sleep(LOOK)
    keeping.cancel()
    universe.over = True
    while universe.runners:
        for member in universe.runners:
            universe.ask_to_leave(member)
        await asyncio.sleep(LOOK)


async def _submit(story: Scenario, app: Retoma) -> None:
    """As a client that asks again where the database kept it from its answer."""
    while True:
        try:
            await story.submit(app)
        except (DatabaseError, Unsure):
            await asyncio.sleep(1.0)
        else:
            return


def _quiet(universe: Universe) -> bool:
    return not universe.file.read(lambda tx: tx.all(OPEN))


def _still_open(universe: Universe) -> Iterator[str]:
    for job, kind, state in universe.file.read(lambda tx: tx.all(OPEN)):
        yield f"liveness: job {job} ({kind}) is still {state}"


def _checked(universe: Universe, story: Scenario) -> Iterator[str]:
    def look(tx: Transaction) -> list[str]:
        fold_tallies(tx)
        found = check(tx, story.ledger.read())
        return [f"{each.rule}: {each.subject}: {each.found}" for each in found]

    # A task or a future whose error was never retrieved reports it only when it is collected.
    universe.loop.forget_done()
    gc.collect()
    yield from universe.file.write(look)[0]
    try:
        yield from story.verify() or ()
    except AssertionError as error:
        yield f"verify: {error}"
    for context in universe.loop.errors:
        yield f"unhandled: {context.get('message')}: {context.get('exception')!r}"


def _count_jobs(universe: Universe) -> int:
    [[count]] = universe.file.read(lambda tx: tx.all(JOBS))
    return int(count)


@contextmanager
def quiet() -> Iterator[None]:
    """Drop log lines and warnings of tasks that died with their host, and collect no garbage by chance.

    `run_universe` collects once, before its check, so that a universe does not depend on the ones
    before it. Objects that exist now are left out: looking at them takes longest.
    Everything is restored at the end.
    """
    before = structlog.get_config()
    hook, thresholds, pace = sys.unraisablehook, gc.get_threshold(), sys.getswitchinterval()
    collects, frozen = gc.isenabled(), gc.get_freeze_count() > 0
    # Nobody logs anything critical: lines below are not even made.
    wrapper = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(processors=[_drop], wrapper_class=wrapper)
    sys.unraisablehook = lambda _: None
    gc.collect()
    if not frozen:
        gc.freeze()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # coroutines of hosts that died
            try:
                yield
            finally:
                gc.collect()
    finally:
        sys.unraisablehook = hook
        if not frozen:
            gc.unfreeze()
        gc.set_threshold(*thresholds)
        if collects:
            gc.enable()
        sys.setswitchinterval(pace)
        structlog.configure(**before)


def _drop(*_: Any) -> Any:
    raise structlog.DropEvent
