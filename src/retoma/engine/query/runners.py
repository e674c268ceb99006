"""Runners: what each says of itself, and how many of its slots are in use."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from retoma.codec import decode
from retoma.db import Row, Transaction, moment
from retoma.engine.query.page import at, sql

LIST_RUNNERS = sql("list_runners")


@dataclass(frozen=True, slots=True)
class RunnerSeen:
    """A runner's row."""

    boot: str
    name: str
    host: str
    pid: int
    state: str
    beat_at: datetime
    lease_until: datetime
    slots: int
    knows: list[str]
    expired: bool
    held: int = 0  # slots in use
    trouble: str | None = None  # why it claims nothing, if it does not
    drain_at: datetime | None = None  # since when somebody wants it to leave
    version: str = ""  # of retoma, and of the application where it says one

    @property
    def living(self) -> bool:
        """It may claim: it says so, and its lease is not over."""
        return self.state == "alive" and not self.expired


def list_runners(tx: Transaction) -> list[RunnerSeen]:
    """Those who say they live, and those recently gone; the latest beat first."""
    return [_runner(row) for row in tx.all(LIST_RUNNERS)]


def _runner(row: Row) -> RunnerSeen:
    boot, name, host, pid, state, beat_at, lease_until, slots, knows, now, *more = row
    held, trouble, drain, version = more
    known: Sequence[str] = decode(knows)
    return RunnerSeen(
        boot=boot,
        name=name,
        host=host,
        pid=pid,
        state=state,
        beat_at=at(beat_at),
        lease_until=at(lease_until),
        slots=slots,
        knows=list(known),
        expired=at(lease_until) < at(now),
        # A job that is being settled is still its own, and its slot may have the next one already.
        held=min(held, slots),
        trouble=trouble,
        drain_at=moment(drain),
        version=version,
    )
