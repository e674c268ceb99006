"""What all the stores of this application need: named SQL, the log, ids people can say, times."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from retoma import db
from retoma.apps.ads.model import Event
from retoma.codec import encode
from retoma.db import seconds_between
from retoma.db.rows import read_json
from retoma.db.statements import Statements
from retoma.engine.run.transaction import Transaction

R = TypeVar("R")
PROXIES: Final = "ads.proxies"
SESSIONS: Final = "ads.sessions"
SESSION: Final = "ads.session"
EXTRACTION: Final = "ads.extraction"
STORAGE: Final = "ads.storage"
HEALTH: Final = "ads.health"
PROGRESS: Final = 60.0  # seconds between two lines of progress


class Sort(StrEnum):
    """What people operate; each by its own name in addresses and tables."""

    WORKERS = "workers"
    PROXIES = "proxies"
    WRITERS = "writers"

    @property
    def one(self) -> str:
        return {"workers": "worker", "proxies": "proxy", "writers": "writer"}[self]

    @property
    def secret(self) -> str:
        """The column whose secret lies in the vault."""
        return "password" if self is Sort.PROXIES else "api_key"


SQL: Final = Statements("retoma.apps.ads.sql")


def tell(
    tx: Transaction,
    event: Event,
    details: Mapping[str, Any],
    *,
    mission: str | None = None,
    session: int | None = None,
) -> None:
    tx.run(SQL.log, mission=mission, session=session, event=str(event), details=encode(details))


def lasted(tx: db.Transaction, mission: str, event: Event) -> int | None:
    """Milliseconds since this was last told of it."""
    return milliseconds(*(tx.one(SQL.began, mission=mission, event=str(event)) or (None, None)))


def numbers(tx: Transaction, sort: str, n: int) -> list[str]:
    """So many ids that people can say to each other: MIS-000042."""
    last = tx.one(SQL.next_numbers, into=int, name=sort, n=n) or 0
    return [f"{sort}-{number:06}" for number in range(last - n + 1, last + 1)]


def tell_progress(
    tx: Transaction, mission: str, event: Event, details: Mapping[str, Any]
) -> None:
    """Where something has changed, and at most once a minute."""
    row = tx.one(SQL.last_progress, mission=mission, event=str(event))
    told, last, at, now = row or (0, None, None, None)
    if not told or (
        read_json(last) != details and (seconds_between(at, now) or 0.0) >= PROGRESS
    ):
        tell(tx, event, details, mission=mission)


def holds(tx: Transaction, job: int, epoch: int) -> bool:
    """Whether this very claim still runs: who has lost the job, or is lost, writes nothing."""
    return tx.one(SQL.hold_claim, job=job, epoch=epoch) is not None


def milliseconds(earlier: Any, later: Any) -> int | None:
    """Between two times as either database gives them."""
    seconds = seconds_between(earlier, later)
    return None if seconds is None else round(seconds * 1000)
