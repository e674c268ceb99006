"""What runs or is parked: where it stands and whether it moves. Bounded by slots, never history."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from retoma.db import Transaction, moment, seconds_until
from retoma.engine.query.page import SQL, checked
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.states import State

ALL = 2**31  # more than there can be slots
QUIET = 600.0  # seconds without progress (seed 000): long for a page, short for a night


@dataclass(frozen=True, slots=True)
class Stand:
    """Jobs of a kind that stand at the same checkpoint."""

    kind: str
    checkpoint: str | None  # None: claimed, and nothing reached yet
    state: State
    jobs: int
    oldest: float  # seconds since the one that is longest there moved


@dataclass(frozen=True, slots=True)
class Stuck:
    """A job that is held and does not move."""

    job: int
    kind: str
    batch: int | None
    checkpoint: str | None
    runner: str  # its name; its boot where nobody knows it any more
    moved_at: datetime | None
    quiet: float  # seconds
    orphan: bool  # its runner's lease is over: it is taken back by itself


def funnel(tx: Transaction, kind: str | None = None) -> list[Stand]:
    """How many are at which checkpoint, running and parked."""
    return [
        Stand(of, checkpoint, State(state), int(n), _since(oldest, now))
        for of, checkpoint, state, n, oldest, now in tx.all(SQL.funnel, kind=kind)
    ]


def stuck(
    tx: Transaction,
    *,
    quiet: Any = QUIET,
    kind: str | None = None,
    batch: int | None = None,
    limit: int = 50,
) -> list[Stuck]:
    """Held without progress for `quiet`, or by a runner whose lease is over; the longest first."""
    asked = {"quiet": seconds(quiet), "kind": kind, "batch": batch}
    rows = tx.all(SQL.stuck, **asked, limit=checked(limit, "jobs"))
    return [
        Stuck(
            job, kind, batch, checkpoint, name or boot, moment(moved), _since(moved, now),
            bool(orphan),
        )
        for job, kind, batch, checkpoint, boot, name, moved, orphan, now in rows
    ]  # fmt: skip


def count_stuck(
    tx: Transaction, *, quiet: Any = QUIET, kind: str | None = None, batch: int | None = None
) -> int:
    """How many there are, however many that is: as many are looked at as there are slots in use."""
    asked = {"quiet": seconds(quiet), "kind": kind, "batch": batch}
    return len(tx.all(SQL.stuck, **asked, limit=ALL))


def _since(then: Any, now: Any) -> float:
    return seconds_until(now, then) or 0.0
