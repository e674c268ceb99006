"""Two databases, one way of asking. The only room that speaks to a driver."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

from retoma.db.clock import MOVABLE_CLOCK
from retoma.db.crashpoint import crashpoint
from retoma.db.database import (
    EVERYTHING,
    Away,
    BadRow,
    Busy,
    Call,
    Database,
    DatabaseError,
    Full,
    Interrupted,
    Lane,
    ReplyLost,
    Transaction,
    Unfit,
    from_driver,
)
from retoma.db.names import quoted
from retoma.db.rows import NO_COLUMN, Json, Row, moment, seconds_between, seconds_until
from retoma.db.statements import Statement, adhoc, statement, verbatim
from retoma.words import say

__all__ = [
    "EVERYTHING",
    "MOVABLE_CLOCK",
    "NO_COLUMN",
    "Away",
    "BadRow",
    "Busy",
    "Call",
    "Database",
    "DatabaseError",
    "Full",
    "Interrupted",
    "Json",
    "Lane",
    "ReplyLost",
    "Row",
    "Statement",
    "Transaction",
    "Unfit",
    "adhoc",
    "borrow",
    "crashpoint",
    "file_of",
    "from_driver",
    "moment",
    "open",
    "quoted",
    "seconds_between",
    "seconds_until",
    "statement",
    "verbatim",
]


def open(  # noqa: A001 — `db.open(url)` is the word
    url: str, *, moved: Callable[[], int] | None = None, patience: float | None = None
) -> Database:
    """The database behind an address. Nothing is opened until it is asked something.

    `moved` is for tests: the microseconds by which this process has moved its time. `patience`:
    for how many seconds it is asked again while it is away or busy.
    """
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        from retoma.db.sqlite import Sqlite  # noqa: PLC0415 — a driver costs its import

        return Sqlite(url, moved, patience)
    if scheme in ("postgresql", "postgres"):
        from retoma.db.postgres import Postgres  # noqa: PLC0415 — likewise

        return Postgres(url, moved, patience)
    raise Unfit(
        say(
            "{scheme}: write sqlite:///work.db or postgresql://host/name",
            scheme=scheme or "no scheme",
        )
    )


def file_of(url: str) -> Path | None:
    """The file that holds a whole database; None: it is a server's."""
    if urlsplit(url).scheme != "sqlite":
        return None
    from retoma.db.sqlite import path_of  # noqa: PLC0415 — a driver costs its import

    return path_of(url)


def borrow(connection: object) -> AbstractContextManager[Transaction]:
    """A caller's psycopg connection as a transaction of ours, which its owner commits."""
    from retoma.db import borrowed  # noqa: PLC0415 — likewise

    return borrowed.borrow(connection)
