"""Runners: what each says of itself, and how many of its slots are in use."""

from dataclasses import dataclass, replace
from datetime import datetime

from retoma.db import Transaction
from retoma.engine.query.page import SQL


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
    # A job that is being settled is still its own, and its slot may have the next one already.
    return [
        replace(each, held=min(each.held, each.slots))
        for each in tx.all(SQL.list_runners, into=RunnerSeen)
    ]
