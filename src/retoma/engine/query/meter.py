"""Everything that is counted, for whoever asks again and again: what it costs to tell does not grow
with history."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from retoma.db import Row, Transaction, moment
from retoma.engine.query.held import QUIET
from retoma.engine.query.page import SQL
from retoma.engine.query.runners import RunnerSeen, list_runners
from retoma.engine.rules.events import End
from retoma.engine.rules.states import State
from retoma.engine.store import breaker, budget, cost, pauses, rate
from retoma.engine.store.breaker import BreakerSeen
from retoma.engine.store.budget import BudgetSeen
from retoma.engine.store.cost import CostSeen, Scope
from retoma.engine.store.pauses import Known
from retoma.engine.store.rate import RateSeen
from retoma.engine.store.rows import now

MOST = 200  # queues, limits or budgets
NEVER = math.inf  # seconds since something that has not happened
STATES = frozenset(State)
ENDS: Mapping[str, End] = {
    **{str(end): end for end in End},
    "buried": End.FAILED,
    "poisoned": End.LOST,
}


class Sum(NamedTuple):
    """How often, and for how many milliseconds together."""

    n: int
    ms: float


@dataclass(frozen=True, slots=True)
class Line:
    """A queue in which jobs are due."""

    queue: str
    oldest: float  # seconds since the one that waits longest was due
    beat: float  # seconds since a runner beat that knows what stands first in it


@dataclass(frozen=True, slots=True)
class LimitNow:
    """How many run under a key, and how many may."""

    key: str
    cap: int
    used: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """One reading."""

    jobs: Mapping[tuple[str, State], int]  # of a kind in a state, now
    dead: Mapping[str, int]  # by code, now
    happened: Mapping[tuple[str, str], int]  # to a kind: which event, how often ever
    lasted: Mapping[tuple[str, str], Mapping[int, Sum]]  # the same by how long it took
    did: Mapping[tuple[str, str], Sum]  # by which boot: which event, how often
    held: Mapping[tuple[str, str], int]  # of a kind at a checkpoint, now
    stuck: Mapping[str, int]  # of those: by kind, how many do not move
    lines: Sequence[Line] = ()
    runners: Sequence[tuple[RunnerSeen, float]] = ()  # and seconds since its last beat
    pools: Mapping[tuple[str, str], int] = field(default_factory=dict)  # things that stand so
    limits: Sequence[LimitNow] = ()
    breakers: Sequence[BreakerSeen] = ()
    rates: Sequence[RateSeen] = ()
    costs: Sequence[CostSeen] = ()  # by kind, provider and model
    budgets: Sequence[BudgetSeen] = ()  # of applications and providers
    pauses: Sequence[tuple[str, str]] = ()  # what somebody paused: its scope and its name

    def ended(self, kind: str, end: End) -> int:
        """How many claims of a kind ended so; each ends once (E9)."""
        return sum(
            self.happened.get((kind, event), 0) for event, its in ENDS.items() if its is end
        )

    @property
    def kinds(self) -> list[str]:
        named = {kind for kind, _ in self.jobs} | {kind for kind, _ in self.happened}
        return sorted(named)


def read_meter(tx: Transaction, zone: str) -> Meter:
    """Everything; `zone`: by whose days and months budgets are counted."""
    moves = _Moves()
    for what, whose, event, code, bucket, n, ms in tx.all(SQL.meter_moves):
        moves.add(what, whose, event, code, bucket, Sum(int(n), float(ms)))
    at = now(tx)
    held, stuck = _held(tx)
    paused = pauses.known(tx)
    runners = [(each, _since(each.beat_at, at)) for each in list_runners(tx)]
    return Meter(
        jobs=moves.jobs,
        dead=moves.dead,
        happened=moves.happened,
        lasted=moves.lasted,
        did=moves.did,
        held=held,
        stuck=stuck,
        lines=_lines(_asked_for(tx, paused), runners, at),
        runners=runners,
        pools={(pool, stands): int(n) for pool, stands, n in tx.all(SQL.meter_pools)},
        limits=tx.all(SQL.meter_limits, into=LimitNow, most=MOST)[:MOST],
        breakers=breaker.list_breakers(tx),
        rates=rate.list_rates(tx)[:MOST],
        costs=cost.list_costs(tx, Scope.KIND, zone),
        budgets=budget.standing_budgets(tx, zone, limit=MOST),
        pauses=paused.pauses,
    )


def stuck_by_kind(tx: Transaction) -> Mapping[str, int]:
    """Of what is held: how many do not move."""
    return _held(tx)[1]


def read_lines(tx: Transaction) -> list[Line]:
    """The queues in which jobs are due; what is paused waits because somebody wants it to."""
    at = now(tx)
    runners = [(each, _since(each.beat_at, at)) for each in list_runners(tx)]
    return _lines(_asked_for(tx, pauses.known(tx)), runners, at)


class _Moves:
    """What was tallied, taken apart."""

    def __init__(self) -> None:
        self.jobs: Counter[tuple[str, State]] = Counter()
        self.dead: Counter[str] = Counter()
        self.happened: Counter[tuple[str, str]] = Counter()
        self.lasted: dict[tuple[str, str], dict[int, Sum]] = defaultdict(dict)
        self.did: dict[tuple[str, str], Sum] = {}

    def add(self, what: str, whose: str, event: str, code: str, bucket: int, n: Sum) -> None:
        match what:
            case "state":
                self._stand(whose, event, code, n.n)
            case "kind":
                self.happened[whose, event] += n.n
                if bucket >= 0:
                    self.lasted[whose, event][bucket] = n
            case _:
                self.did[whose, event] = n

    def _stand(self, kind: str, state: str, code: str, n: int) -> None:
        if state not in STATES:  # refused and retired are tallied too
            return
        self.jobs[kind, State(state)] += n
        if state == State.DEAD:
            self.dead[code] += n


def _held(tx: Transaction) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    held: Counter[tuple[str, str]] = Counter()
    stuck: Counter[str] = Counter()
    for kind, checkpoint, n, still in tx.all(SQL.meter_held, quiet=QUIET):
        held[kind, checkpoint] += int(n)
        stuck[kind] += int(still)
    return held, stuck


def _asked_for(tx: Transaction, paused: Known) -> list[Row]:
    rows = tx.all(SQL.meter_lines, most=MOST)
    return [
        (queue, moment(since), tag)
        for queue, since, tag in rows
        if not paused.holds(queue, tag.rpartition("@")[0])
    ]


def _since(then: datetime, now: datetime) -> float:
    return max((now - then).total_seconds(), 0.0)


def _lines(
    rows: Sequence[Row], runners: Sequence[tuple[RunnerSeen, float]], now: datetime
) -> list[Line]:
    beats: dict[str, float] = {}
    for runner, age in runners:
        for tag in runner.knows:
            beats[tag] = min(age, beats.get(tag, NEVER))
    lines: dict[str, Line] = {}
    for queue, since, tag in rows:
        before = lines.get(queue, Line(queue, 0.0, 0.0))
        oldest, beat = _since(since, now), beats.get(tag, NEVER)
        lines[queue] = Line(queue, max(oldest, before.oldest), max(beat, before.beat))
    return [lines[queue] for queue in sorted(lines)]
