"""A database for simulations, shared by every host of one universe: SQLite in memory.

Each transaction is atomic between two awaits, so a simulation decides every interleaving by deciding who
goes next. The statements are the real ones; only the file, the threads and the locks are missing, which
the tests of `sqlite.py` cover. Another `Content` plays universes on another database.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import apsw

from retoma.db.database import Lane, Transaction
from retoma.db.patience import PATIENCE, patiently
from retoma.db.sqlite import SqliteTransaction, _translated

T = TypeVar("T")

SECOND = 1_000_000  # microseconds
BEGIN = "SAVEPOINT simulated"  # all of a universe is one transaction of SQLite's
SCRATCH = "SELECT sql FROM temp.sqlite_schema WHERE sql IS NOT NULL"
STATEMENTS = 1_000  # that stay prepared: more than the engine has


class Conditions(Protocol):
    """What a simulation decides about each call."""

    async def before(self, verb: str) -> None:
        """Let others go first, or raise what keeps the call from happening."""

    async def after(self, verb: str) -> None:
        """Let others go first, or raise what keeps its answer from arriving."""

    def now(self, verb: str) -> None:
        """As `before`, for a call that waits for nobody."""

    def answered(self, verb: str) -> None:
        """As `after`, for a call that waits for nobody."""

    def wake(self) -> None:
        """Run the heartbeat of the host that asks."""

    def notify(self, topics: set[str]) -> None:
        """A transaction has committed that wakes whoever listens to these topics."""


class Content(Protocol):
    """What all hosts of a universe share, and the clock that their statements read."""

    dialect: str
    clock: Callable[[], float]

    def begin_again(self, clock: Callable[[], float]) -> None:
        """Forget what the last universe wrote; the next one has this clock."""

    def keep(self) -> None:
        """Make what was written so far the beginning of every universe."""

    def write(self, fn: Callable[[Transaction], T]) -> tuple[T, set[str]]:
        """One transaction, committed; what it returned and whom it wakes."""

    def read(self, fn: Callable[[Transaction], T]) -> T:
        """Questions only."""


class SimulatedFile:
    """The content of a universe in a file of SQLite's, in memory.

    One universe after the other uses the same file: everything that one writes is one transaction of
    SQLite's, which `begin_again` rolls back. So statements are prepared once, not once per universe.
    """

    dialect = "sqlite"

    def __init__(self) -> None:
        self.clock: Callable[[], float] = lambda: 0.0
        self.connection = connection = apsw.Connection(
            ":memory:", statementcachesize=STATEMENTS
        )
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        flags = apsw.SQLITE_INNOCUOUS
        connection.create_scalar_function(
            "clock", lambda *_: round(self.clock() * SECOND), 0, flags=flags
        )
        connection.create_scalar_function(
            "clock_in", lambda *s: round((self.clock() + s[0]) * SECOND), 1, flags=flags
        )
        for pragma in ("foreign_keys = on", "temp_store = memory", "synchronous = off"):
            connection.execute(f"PRAGMA {pragma}").fetchall()

    def begin_again(self, clock: Callable[[], float]) -> None:
        if self.connection.in_transaction:
            self._undo()
        self.clock = clock
        self.connection.execute("BEGIN")

    def _undo(self) -> None:
        """Roll back. Tables for the statements' own use stay: made anew, all would be prepared anew."""
        made = self._scratch_tables()
        self.connection.execute("ROLLBACK")
        for text in sorted(made - self._scratch_tables()):
            self.connection.execute(text.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))

    def _scratch_tables(self) -> set[str]:
        return {str(text) for (text,) in self.connection.execute(SCRATCH)}

    def keep(self) -> None:
        self.connection.execute("COMMIT")

    def write(self, fn: Callable[[Transaction], T]) -> tuple[T, set[str]]:
        alone: list[None] = []  # not empty where it is one statement, a transaction in itself
        transaction = SqliteTransaction(self.connection, BEGIN, lambda: alone.append(None))
        try:
            value = fn(transaction)
        except BaseException as error:
            if transaction.begun and not alone:
                self.connection.execute("ROLLBACK TO simulated")
                self.connection.execute("RELEASE simulated", can_cache=False)
            if isinstance(error, apsw.Error):
                raise _translated(error, Path()) from error
            raise
        if transaction.begun and not alone:
            self.connection.execute("RELEASE simulated", can_cache=False)
        return value, transaction.topics

    def read(self, fn: Callable[[Transaction], T]) -> T:
        """Nothing is undone, so nothing is begun."""
        before = self.connection.total_changes()
        try:
            value = fn(SqliteTransaction(self.connection))
        except apsw.Error as error:
            raise _translated(error, Path()) from error
        if before != self.connection.total_changes():
            raise RuntimeError(f"{fn} is a question, and has changed rows")
        return value

    def close(self) -> None:
        self.connection.close()


class SimulatedDatabase:
    """One host's way to what all share."""

    url = "simulated:"

    def __init__(self, file: Content, conditions: Conditions) -> None:
        self.dialect = file.dialect
        self._file = file
        self._conditions = conditions
        self.topics: set[str] = set()

    async def write(
        self,
        fn: Callable[[Transaction], T],
        *,
        verb: str,
        lane: Lane = Lane.WRITE,  # noqa: ARG002 — there are no connections
        patience: float | None = None,
    ) -> T:
        async def once() -> T:
            await self._conditions.before(verb)
            value, topics = self._file.write(fn)
            self._conditions.notify(topics)
            await self._conditions.after(verb)
            return value

        return await patiently(once, PATIENCE if patience is None else patience)

    async def read(self, fn: Callable[[Transaction], T], *, patience: float | None = None) -> T:
        async def once() -> T:
            await self._conditions.before("read")
            value = self._file.read(fn)
            await self._conditions.after("read")
            return value

        return await patiently(once, PATIENCE if patience is None else patience)

    def write_now(self, fn: Callable[[Transaction], T], *, verb: str) -> T:
        self._conditions.now(verb)
        value, topics = self._file.write(fn)
        self._conditions.notify(topics)
        self._conditions.answered(verb)
        return value

    def wait_bell(self, seconds: float) -> set[str]:
        raise NotImplementedError("a simulated host does not wait in a thread")

    def wake(self) -> None:
        self._conditions.wake()

    def deaf(self) -> bool:
        return False

    def free_space(self) -> int | None:
        """It lies in memory: nobody can tell."""
        return None

    def close(self) -> None:
        """The file belongs to the universe."""
