"""What all the stores of this application need: named SQL, the log, ids people can say, times."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from enum import StrEnum
from functools import cache
from typing import Any, Final, TypeVar, cast, get_args, get_type_hints

from retoma import db
from retoma.apps.ads.model import Event
from retoma.codec import encode
from retoma.db import Row, Statement, moment, statement
from retoma.engine.run.transaction import Transaction

R = TypeVar("R")
PROXIES: Final = "ads.proxies"
SESSIONS: Final = "ads.sessions"
SESSION: Final = "ads.session"
EXTRACTION: Final = "ads.extraction"
STORAGE: Final = "ads.storage"
HEALTH: Final = "ads.health"
PROGRESS: Final = 60.0  # seconds between two lines of progress
MICROSECONDS: Final = 1_000_000


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


def verb(name: str) -> Statement:
    return statement("retoma.apps.ads.sql", name)


BEGAN = verb("began")
HOLD_CLAIM = verb("hold_claim")
LAST_PROGRESS = verb("last_progress")
LOG = verb("log")
NEXT_NUMBERS = verb("next_numbers")


def tell(
    tx: Transaction,
    event: Event,
    details: Mapping[str, Any],
    *,
    mission: str | None = None,
    session: int | None = None,
) -> None:
    tx.run(LOG, mission=mission, session=session, event=str(event), details=encode(details))


def lasted(tx: db.Transaction, mission: str, event: Event) -> int | None:
    """Milliseconds since this was last told of it."""
    return milliseconds(*(tx.one(BEGAN, mission=mission, event=str(event)) or (None, None)))


def numbers(tx: Transaction, sort: str, n: int) -> list[str]:
    """So many ids that people can say to each other: MIS-000042."""
    row = tx.one(NEXT_NUMBERS, name=sort, n=n)
    last = 0 if row is None else int(row[0])
    return [f"{sort}-{number:06}" for number in range(last - n + 1, last + 1)]


def tell_progress(
    tx: Transaction, mission: str, event: Event, details: Mapping[str, Any]
) -> None:
    """Where something has changed, and at most once a minute."""
    row = tx.one(LAST_PROGRESS, mission=mission, event=str(event))
    told, last, at, now = row or (0, None, None, None)
    if not told or (json_of(last) != details and seconds_between(at, now) >= PROGRESS):
        tell(tx, event, details, mission=mission)


def holds(tx: Transaction, job: int, epoch: int) -> bool:
    """Whether this very claim still runs: who has lost the job, or is lost, writes nothing."""
    return tx.one(HOLD_CLAIM, job=job, epoch=epoch) is not None


def seconds_between(earlier: Any, later: Any) -> float:
    """Of two times as either database gives them."""
    if isinstance(earlier, datetime):
        return float((later - earlier).total_seconds())
    return float(later - earlier) / MICROSECONDS


def milliseconds(earlier: Any, later: Any) -> int | None:
    if earlier is None or later is None:
        return None
    return round(seconds_between(earlier, later) * 1000)


def json_of(value: Any) -> Any:
    """A json column, as either database gives it."""
    return json.loads(value) if isinstance(value, str) else value


# — rows as records —


def read_record(shape: type[R], row: Row) -> R:
    """Build a dataclass from a row whose columns stand in the order of its fields, each value as its
    field is annotated, whichever database it comes from."""
    pairs = zip(_readers(cast("Any", shape)), row, strict=True)
    return shape(**{name: _read(read, value) for (name, read), value in pairs})


def _read(read: Callable[[Any], Any] | None, value: Any) -> Any:
    return value if value is None or read is None else read(value)


@cache
def _readers(shape: type) -> Sequence[tuple[str, Callable[[Any], Any] | None]]:
    hints = get_type_hints(shape)
    return [(each.name, _reader(hints[each.name])) for each in fields(shape)]


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    """How a value of this type is read; None: it comes from both databases as it is."""
    for each in (hint, *get_args(hint)):
        if each in READERS:
            return READERS[each]
        if isinstance(each, type) and issubclass(each, StrEnum):
            return each
    return None


def read_date(value: Any) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


READERS: Final[Mapping[Any, Callable[[Any], Any]]] = {
    bool: bool,
    date: read_date,
    datetime: moment,
    float: lambda value: value if isinstance(value, int) else float(value),
    list[str]: json_of,
}
