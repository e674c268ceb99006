"""A psycopg connection of somebody else, lent to us for one submission.

What we write is part of its transaction, which only its owner commits. Our schema stands alone in
its search_path meanwhile (a table `jobs` of its owner, even a temporary one, is not ours), and
everything is put back: by hand where we got through, by a savepoint where we did not.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg.types.string import TextLoader

from retoma.db.database import Call, Transaction, Unfit
from retoma.db.postgres import CHANNEL, SCHEMA, Moments, translated
from retoma.db.rows import Row
from retoma.db.statements import Statement
from retoma.words import say

OURS = f"{SCHEMA}, pg_temp"  # last, or what is temporary would come first


@contextmanager
def borrow(connection: object) -> Iterator["Borrowed"]:
    """Its transaction, as ours for as long as the block lasts."""
    lent = _checked(connection)
    cursor = psycopg.Cursor(lent, row_factory=tuple_row)
    cursor.adapters.register_loader("json", TextLoader)
    cursor.adapters.register_loader("timestamptz", Moments)
    try:
        cursor.execute("SAVEPOINT retoma", prepare=False)
        try:
            yield from _in_our_schema(cursor)
        except BaseException:
            if lent.info.transaction_status in (
                TransactionStatus.INTRANS,
                TransactionStatus.INERROR,
            ):
                cursor.execute("ROLLBACK TO SAVEPOINT retoma", prepare=False)
            raise
        cursor.execute("RELEASE SAVEPOINT retoma", prepare=False)
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable) as error:
        # Where a role may not look, a table of ours is not even there.
        raise Unfit(f"the role of this connection may not submit: {error}".strip()) from error
    except psycopg.Error as error:
        raise translated(error) from error


def _in_our_schema(cursor: "psycopg.Cursor[Row]") -> Iterator["Borrowed"]:
    [path] = cursor.execute(
        "SELECT current_setting('search_path')", prepare=False
    ).fetchone() or [""]
    _set_path(cursor, OURS)
    transaction = Borrowed(cursor)
    yield transaction
    transaction.notify()
    _set_path(cursor, path)


def _set_path(cursor: "psycopg.Cursor[Row]", path: str) -> None:
    cursor.execute("SELECT set_config('search_path', %s, true)", [path], prepare=False)


def _checked(connection: object) -> "psycopg.Connection[Any]":
    if isinstance(connection, psycopg.AsyncConnection):
        raise Unfit(say("an AsyncConnection: submit_on takes a plain psycopg.Connection"))
    if not isinstance(connection, psycopg.Connection):
        kind = type(connection)
        raise Unfit(
            say(
                "{module}.{qualname} is no connection of psycopg 3, and submit_on"
                " knows no other driver",
                module=kind.__module__,
                qualname=kind.__qualname__,
            )
        )
    if connection.closed:
        raise Unfit(say("the connection is closed"))
    status = connection.info.transaction_status
    if status == TransactionStatus.INERROR:
        raise Unfit(
            say("the connection is in a transaction that has failed: roll it back first")
        )
    if status == TransactionStatus.IDLE and connection.autocommit:
        raise Unfit(
            say(
                "the connection commits each statement by itself and has no"
                " transaction open: write `with connection.transaction():` around"
                " it, or use app.submit"
            )
        )
    return connection


class Borrowed(Transaction):
    """As a transaction of ours, without a commit."""

    dialect = "postgres"

    def __init__(self, cursor: "psycopg.Cursor[Row]") -> None:
        self._cursor = cursor
        self._topics: set[str] = set()

    def run(self, statement: Statement, /, **params: Any) -> int:
        self.ask(statement, params)
        return self._cursor.rowcount

    def for_caller(self, statement: Statement, **_: Any) -> tuple[list[Row], int]:
        raise Unfit(
            say(
                "{name}: a caller has the connection for its own statements",
                name=statement.name,
            )
        )

    def together(self, calls: Iterable[Call]) -> list[list[Row]]:
        return [self.ask(call.statement, call.params) for call in calls]

    def finish(self, *calls: Call) -> list[list[Row]]:
        return self.together(calls)

    def ring(self, topic: str) -> None:
        self._topics.add(topic)

    def notify(self) -> None:
        """Heard when the owner commits, and not at all if it never does."""
        for topic in sorted(self._topics):
            self._cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, topic], prepare=False)

    def ask(self, statement: Statement, params: dict[str, Any]) -> list[Row]:
        rows: list[Row] = []
        for text in statement.postgres:
            self._cursor.execute(text.sql, params, prepare=False)
            if self._cursor.description:
                rows = self._cursor.fetchall()
        return rows
