"""Universes on PostgreSQL: one connection, each transaction atomic between two awaits, one clock.

The statements, the pipelines and the plans are PostgreSQL's own. What its locks do between connections is
for the fault sweep: here nobody ever waits for one.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg
from psycopg import sql
from psycopg.types.string import TextLoader

from retoma.db import Transaction
from retoma.db.postgres import SET_SESSION, Moments, PostgresTransaction, translated
from retoma.library import Retoma
from retoma.simulation.universe import lay_schema
from tests.conftest import database_address, postgres_address

T = TypeVar("T")

SECOND = 1_000_000  # microseconds
SET_CLOCK = "SELECT set_config('retoma.simulated', %s, false)"
# Everything that is told the time asks this function.
CLOCK = """
CREATE OR REPLACE FUNCTION retoma.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT timestamptz 'epoch'
        + CAST(current_setting('retoma.simulated') AS bigint) * interval '1 microsecond' $$
"""
TABLES = (
    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'retoma'::regnamespace"
)
ALONE = "SET LOCAL session_replication_role = replica"  # no trigger fires: rows come back as they were


class SimulatedServer:
    """The content of a universe in a database of PostgreSQL's, of which nobody else knows.

    What a universe has written is cut off, not deleted: where rows lie, and so the order in which they
    are found, must not depend on the universe before.
    """

    dialect = "postgres"

    def __init__(self, url: str) -> None:
        self.clock: Callable[[], float] = lambda: 0.0
        self._kept: dict[str, bytes] = {}  # the first rows of each table
        self._connection = psycopg.connect(url, autocommit=True, prepare_threshold=2)
        self._connection.adapters.register_loader("json", TextLoader)
        self._connection.adapters.register_loader("timestamptz", Moments)
        self._connection.execute(SET_SESSION)

    def begin_again(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        if not self._kept:
            return
        names = sql.SQL(", ").join(map(sql.Identifier, self._kept))
        with self._connection.transaction():
            self._connection.execute(ALONE)
            self._connection.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY").format(names))
            for name, rows in self._kept.items():
                if rows:
                    copy = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))
                    with self._connection.cursor().copy(copy) as to:
                        to.write(rows)

    def keep(self) -> None:
        self._connection.execute(CLOCK)
        for (name,) in self._connection.execute(TABLES).fetchall():
            copy = sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(name))
            with self._connection.cursor().copy(copy) as rows:
                self._kept[name] = b"".join(map(bytes, rows))

    def write(self, fn: Callable[[Transaction], T]) -> tuple[T, set[str]]:
        return self._ask(fn, read_only=False)

    def read(self, fn: Callable[[Transaction], T]) -> T:
        return self._ask(fn, read_only=True)[0]

    def _ask(self, fn: Callable[[Transaction], T], *, read_only: bool) -> tuple[T, set[str]]:
        self._connection.execute(SET_CLOCK, [str(round(self.clock() * SECOND))])
        transaction = PostgresTransaction(
            self._connection, "simulated", pooled=False, read_only=read_only
        )
        try:
            value = fn(transaction)
            transaction.commit()
        except BaseException as error:
            transaction.roll_back()
            raise translated(error) from error
        return value, transaction._topics

    def close(self) -> None:
        self._connection.close()


@contextmanager
def open_server(app: Retoma) -> Iterator[SimulatedServer]:
    """A database with the app's schema on the server of this run; it is dropped afterwards."""
    name = f"retoma_universes_{secrets.token_hex(4)}"
    database = sql.Identifier(name)
    with psycopg.connect(postgres_address(), autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(database))
        try:
            server = SimulatedServer(database_address(name))
            try:
                lay_schema(app, server)
                yield server
            finally:
                server.close()
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
