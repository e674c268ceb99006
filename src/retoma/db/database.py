"""The seam: two databases, one way of asking.

Store functions are plain and take a `Transaction`; async code hops to a thread once per
transaction with `await database.write(fn)` or `read(fn)`. A function may be called again when
the first call provably changed nothing, so it must have no effect but its statements.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from retoma.db.rows import Row, Rows
from retoma.db.statements import Statement

T = TypeVar("T")

OURS = 0x52544D41  # "RTMA", SQLite's application_id
EVERYTHING = "*"  # a topic: anything may have rung while nobody listened


class Lane(StrEnum):
    """Who is asking: on PostgreSQL a connection each, on SQLite a place in the queue."""

    WRITE = "write"
    CLAIM = "claim"  # claims and reads
    PULSE = "pulse"  # goes first: a beat must not wait behind a bulk submit


@dataclass(frozen=True, slots=True)
class Call:
    """One statement with its parameters, not yet sent."""

    statement: Statement
    params: dict[str, Any]


class Transaction(Rows[Statement], Protocol):
    """What a store function may do. Zero rows is an answer."""

    dialect: str

    def run(self, statement: Statement, /, **params: Any) -> int:
        """Run it; how many rows its last statement changed."""

    def for_caller(self, statement: Statement, **params: Any) -> tuple[list[Row], int]:
        """One statement of a caller's own, on the caller's tables: its rows, how many it changed."""

    def ring(self, topic: str) -> None:
        """Let every process that listens hear `topic`, once this transaction has committed."""

    def together(self, calls: Iterable[Call]) -> list[list[Row]]:
        """Several statements without waiting for each: the next is made while one is run."""

    def finish(self, *calls: Call) -> list[list[Row]]:
        """The last thing this transaction does: the calls and the commit in one round trip."""


class Database(Protocol):
    """A database of either make. Opens nothing until it is asked something."""

    url: str
    dialect: str

    async def write(
        self,
        fn: Callable[[Transaction], T],
        *,
        verb: str,
        lane: Lane = Lane.WRITE,
        patience: float | None = None,
    ) -> T:
        """One transaction, committed when this returns.

        Asks again, for `patience` seconds, while the database is away or busy and nothing was
        changed. Raises `ReplyLost` where only the answer to the commit is missing.
        """

    async def read(self, fn: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        """Questions only; asked again, for `patience` seconds, while the database is away."""

    def write_now(self, fn: Callable[[Transaction], T], *, verb: str) -> T:
        """The same as `write` on the pulse lane, from a thread, without asking again."""

    def wait_bell(self, seconds: float) -> set[str]:
        """What has rung since the last call; waits up to `seconds` for the first ring."""

    def wake(self) -> None:
        """End a `wait_bell` in another thread."""

    def deaf(self) -> bool:
        """Whether no bell can be heard here, so that only the tick finds new work."""

    def free_space(self) -> int | None:
        """Bytes left on the disk of the database; None: nobody here can tell."""

    def close(self) -> None:
        """Let go of every connection and thread."""


class DatabaseError(Exception):
    """The database did not do what it was asked. Draws the tree of what that may be:

    DatabaseError
    ├── Away        not reachable; nothing was changed
    │   └── ReplyLost   the commit was sent, its answer never came: it may have happened
    ├── Busy        lost a race for a lock; rolled back, ask again
    │   └── Interrupted  cancelled, or out of its time; rolled back, ask again
    ├── Full        no room left; rolled back, ask again when there is
    ├── BadRow      a row of this statement cannot be stored; rolled back, never ask again
    └── Unfit       not a database this retoma can use
    """


class Away(DatabaseError):
    """The database cannot be reached; nothing was changed."""


class ReplyLost(Away):
    """The connection broke while a commit was under way: it may or may not have happened."""


class Busy(DatabaseError):
    """Another transaction was first; this one was rolled back and may be asked again."""


class Interrupted(Busy):
    """The server stopped a statement: somebody cancelled it, or its time was over."""

    callers: bool = (
        False  # it was a statement of a caller's own, which may never come to an end
    )


class Full(DatabaseError):
    """The database has no room; nothing was changed."""


class BadRow(DatabaseError):
    """A value cannot be stored as it is; nothing was changed."""


class Unfit(DatabaseError):
    """A database that is not ours, or whose schema this retoma does not know."""


def from_driver(error: BaseException) -> bool:
    """Whether the database refused something for a reason that has no class here."""
    return type(error).__module__.partition(".")[0] in ("apsw", "psycopg")


def no_room(said: str) -> str:
    """What a database says when it is full, for the person who must make room."""
    return f"there is no room left in the database, and nothing was changed: {said}"
