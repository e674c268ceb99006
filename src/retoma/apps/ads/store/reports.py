"""The four audit reports of the document (§10.3), asked of the log itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from retoma.apps.ads.store.rows import SQL
from retoma.db import Json, Transaction, moment
from retoma.db.rows import read_json
from retoma.engine.rules.errors import NotFound
from retoma.words import say

HOUR: Final = 3600.0  # seconds
DAY: Final = 24 * HOUR
MOST: Final = 10_000  # lines of one report


@dataclass(frozen=True, slots=True)
class Happened:
    """One line of what happened to a mission."""

    timestamp: datetime
    event: str
    details: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A mission that failed: why then, and what it is now."""

    id: str
    status: str
    error_code: str | None
    error_message: str | None
    retry_count: int
    failed_at: datetime
    worker_id: str | None
    proxy_used: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Performance:
    """What a worker brought home."""

    worker_id: str
    worker_name: str
    completed_count: int
    empty_count: int
    failed_count: int
    avg_duration_ms: float | None
    max_duration_ms: float | None
    ads_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """How a proxy fares."""

    proxy_id: str
    name: str
    host: str
    port: int | None
    fail_count: int
    active: bool
    session_failures: int
    rotations: int
    last_failed_at: datetime | None

    @property
    def bad(self) -> bool:
        """Whether somebody should look at it."""
        return bool(self.fail_count or self.session_failures) or not self.active


def timeline(tx: Transaction, mission: str) -> list[Happened]:
    """In the order in which it happened; also of a mission that was deleted."""
    if tx.one(SQL.knew_mission, mission=mission) is None:
        raise NotFound(say("there is no mission {mission}", mission=mission))
    return tx.all(SQL.list_timeline, into=Happened, mission=mission)


def failures(
    tx: Transaction, seconds: float = DAY, code: str | None = None, most: int = MOST
) -> list[Failure]:
    """Of the last 24 hours, or of another time."""
    rows = tx.all(SQL.report_failures, ago=-seconds, code=code, n=most)
    return [_failure(row) for row in rows]


def performance(tx: Transaction, seconds: float = 7 * DAY) -> list[Performance]:
    """Per worker."""
    return tx.all(SQL.report_workers, into=Performance, ago=-seconds)


def proxies(tx: Transaction, seconds: float = 7 * DAY, most: int = MOST) -> list[Trouble]:
    """The worst first."""
    return tx.all(SQL.report_proxies, into=Trouble, ago=-seconds, n=most)


def now(tx: Transaction) -> datetime:
    [at] = tx.all(SQL.now, into=datetime)
    return at


def _failure(row: Sequence[Any]) -> Failure:
    mission, status, details, at, worker, proxy = row
    told = read_json(details) or {}
    return Failure(
        id=mission,
        status=status,
        error_code=told.get("error_code"),
        error_message=told.get("error_message"),
        retry_count=told.get("retry_count") or 0,
        failed_at=moment(at),
        worker_id=worker,
        proxy_used=proxy,
    )
