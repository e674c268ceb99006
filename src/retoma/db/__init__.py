"""Two databases, one way of asking. The only room that speaks to a driver."""

from contextlib import AbstractContextManager
from urllib.parse import urlsplit

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
    Lane,
    ReplyLost,
    Row,
    Transaction,
    Unfit,
    moment,
)
from retoma.db.statements import Statement, adhoc, statement

__all__ = [
    "EVERYTHING",
    "Away",
    "BadRow",
    "Busy",
    "Call",
    "Database",
    "DatabaseError",
    "Full",
    "Lane",
    "ReplyLost",
    "Row",
    "Statement",
    "Transaction",
    "Unfit",
    "adhoc",
    "borrow",
    "crashpoint",
    "moment",
    "open",
    "statement",
]


def open(url: str) -> Database:  # noqa: A001 — `db.open(url)` is the word
    """The database behind an address. Nothing is opened until it is asked something."""
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        from retoma.db.sqlite import Sqlite  # noqa: PLC0415 — a driver costs its import

        return Sqlite(url)
    if scheme in ("postgresql", "postgres"):
        from retoma.db.postgres import Postgres  # noqa: PLC0415 — likewise

        return Postgres(url)
    raise Unfit(f"{scheme or 'no scheme'}: write sqlite:///work.db or postgresql://host/name")


def borrow(connection: object) -> AbstractContextManager[Transaction]:
    """A caller's psycopg connection as a transaction of ours, which its owner commits."""
    from retoma.db import borrowed  # noqa: PLC0415 — likewise

    return borrowed.borrow(connection)
