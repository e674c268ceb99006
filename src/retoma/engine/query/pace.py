"""How quickly work goes through: by the minute, and how long an attempt takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from retoma.db import Transaction, moment
from retoma.engine.query.page import SQL
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.states import State
from retoma.words import say

HOUR = 3600.0
MOST = 7 * 86_400.0  # seconds: a week by the minute is already ten thousand rows a kind


@dataclass(frozen=True, slots=True)
class Minute:
    """How many jobs of a kind came to a state in one minute; `waiting`: submitted, or once more."""

    at: datetime
    kind: str
    state: State
    jobs: int


@dataclass(frozen=True, slots=True)
class Durations:
    """How long the attempts of a kind took, in seconds. From buckets of powers of two: a
    percentile is right within its bucket."""

    kind: str
    attempts: int
    mean: float
    p50: float
    p95: float


def throughput(tx: Transaction, *, last: Any = HOUR, kind: str | None = None) -> list[Minute]:
    """What came to which state, minute by minute."""
    rows = tx.all(SQL.throughput, seconds=_span(last), kind=kind)
    states = frozenset(State)
    return [
        Minute(moment(minute), of, State(state), int(n))
        for minute, of, state, n in rows
        if state in states
    ]


def durations(
    tx: Transaction,
    *,
    last: Any = HOUR,
    kind: str | None = None,
    state: State = State.DONE,
) -> list[Durations]:
    """How long attempts that ended so took, for each kind."""
    rows = tx.all(SQL.durations, seconds=_span(last), kind=kind, state=state)
    return [
        _durations(of, [(int(bucket), int(n), float(ms)) for _, bucket, n, ms in buckets])
        for of, buckets in groupby(rows, key=itemgetter(0))
    ]


def _span(last: Any) -> float:
    span = seconds(last)
    if not 0 < span <= MOST:
        raise BadInput(say("the pace is told for up to a week, not for {span:g} s", span=span))
    return span


def _durations(kind: str, buckets: Sequence[tuple[int, int, float]]) -> Durations:
    total = sum(n for _, n, _ in buckets)
    counted = [(bucket, n) for bucket, n, _ in buckets]
    mean = sum(ms for _, _, ms in buckets) / total / 1000
    return Durations(kind, total, mean, percentile(counted, 0.5), percentile(counted, 0.95))


def percentile(buckets: Sequence[tuple[int, int]], share: float) -> float:
    """Seconds that `share` of all stay below; inside a bucket they are taken to lie evenly."""
    wanted = share * sum(n for _, n in buckets)
    below = 0
    for bucket, n in buckets:
        if below + n >= wanted:
            inside = (wanted - below) / n
            lowest = (
                0.0 if bucket == 0 else 2.0**bucket
            )  # whatever is quicker than 1 ms is here
            return (lowest + (2.0 ** (bucket + 1) - lowest) * inside) / 1000
        below += n
    return 0.0
