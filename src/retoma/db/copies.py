"""A whole database out, as files, and into an empty one: at one instant, while others write.

SQLite is copied by SQLite itself, as one file. PostgreSQL is asked for every table of our schema in
one transaction that only reads, by its own COPY, so that nobody needs its tools or its disk.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from retoma.db.database import Transaction, Unfit
from retoma.db.migrations import ENGINE, HAS_TABLE, Room, bring_to
from retoma.db.names import quoted
from retoma.db.statements import Statement, adhoc, verbatim
from retoma.words import say

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

WHOLE = "work.db"  # all of an embedded database
BLOCK = 1 << 20  # bytes
TEXT = ".copy"  # a table, as COPY writes it

Read = Callable[[str], IO[bytes]]


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration that a database has."""

    room: str
    number: int
    name: str


@dataclass(frozen=True, slots=True)
class About:
    """A database, at the instant of its copy."""

    dialect: str
    database: str
    at: datetime  # its own time
    applied: tuple[Applied, ...]
    ids: Mapping[str, int] = field(default_factory=dict)  # how far each column has counted

    @property
    def rooms(self) -> tuple[str, ...]:
        """Whose tables it has; the engine's first, because others stand on them."""
        return tuple(sorted({each.room for each in self.applied}, key=_engine_first))

    def newest(self, room: str) -> int:
        return max(each.number for each in self.applied if each.room == room)


@dataclass(frozen=True, slots=True)
class Table:
    """What a copy has of one."""

    name: str
    rows: int
    columns: tuple[str, ...] = ()  # of PostgreSQL, in the order of their text


@dataclass(frozen=True, slots=True)
class Piece:
    """One file of a copy, and the tables in it. Whoever gets it may take it away."""

    path: Path
    tables: tuple[Table, ...]


class Out(ABC):
    """A copy that is being made."""

    about: About

    @abstractmethod
    def pieces(self) -> Iterator[Piece]:
        """One file after the other, all of the same instant."""


@dataclass(frozen=True, slots=True)
class In:
    """What is to be copied in, and the rooms whose migrations make its tables."""

    about: About
    tables: tuple[Table, ...]
    rooms: tuple[Room, ...]
    read: Read


def copy_out(url: str, folder: Path) -> AbstractContextManager[Out]:
    """Copy everything that is ours into files in `folder`."""
    return _sqlite_out(url, folder) if _embedded(url) else _postgres_out(url, folder)


def refuse_used(url: str) -> None:
    """Unfit where something is already: nothing is ever copied over anything."""
    if _embedded(url):
        _refuse_file(_path(url))
        return
    with _writing(url) as tx:
        _refuse_schema(tx)


def copy_in(url: str, copied: In, finish: Callable[[Transaction], T]) -> T:
    """Make the tables, fill them, bring them to the newest schema and let `finish` do the rest:
    all of it, or nothing. Until then nobody sees any of it."""
    return (_sqlite_in if _embedded(url) else _postgres_in)(url, copied, finish)


def _engine_first(room: str) -> tuple[bool, str]:
    return room != ENGINE.name, room


def _embedded(url: str) -> bool:
    return urlsplit(url).scheme == "sqlite"


def _about(tx: Transaction, ids: Mapping[str, int]) -> About:
    if tx.one(HAS_TABLE) is None:
        raise Unfit(say("there is no schema of retoma in this database, and nothing to copy"))
    [(database,)] = tx.all(DATABASE)
    [now] = tx.all(AT, into=datetime)
    applied = tuple(tx.all(APPLIED, into=Applied))
    return About(tx.dialect, database, now, applied, ids)


# — SQLite —


class _Whole(Out):
    def __init__(self, about: About, piece: Piece) -> None:
        self.about = about
        self._piece = piece

    def pieces(self) -> Iterator[Piece]:
        yield self._piece


def _path(url: str) -> Path:
    from retoma.db.sqlite import path_of  # noqa: PLC0415 — a driver costs its import

    return path_of(url)


@contextmanager
def _sqlite_out(url: str, folder: Path) -> Iterator[Out]:
    from retoma.db.sqlite import copy_file  # noqa: PLC0415 — likewise

    whole = folder / WHOLE
    with copy_file(url, whole) as tx:
        about = _about(tx, {})
        names = [name for (name,) in tx.all(TABLES)]
        tables = tuple(Table(name, _rows_of(tx, name)) for name in names)
    yield _Whole(about, Piece(whole, tables))


def _rows_of(tx: Transaction, table: str) -> int:
    [(rows,)] = tx.all(verbatim(f"SELECT count(*) FROM {quoted(table)}"))  # noqa: S608 — quoted
    return int(rows)


def _refuse_file(path: Path) -> None:
    for each in (path, Path(f"{path}-wal"), Path(f"{path}-journal")):
        if each.exists() and each.stat().st_size:
            raise Unfit(
                say(
                    "{path} is there already: a restore writes over nothing. Move it away with"
                    " all that is called like it, or name another database",
                    path=each,
                )
            )


def _sqlite_in(url: str, copied: In, finish: Callable[[Transaction], T]) -> T:
    """Beside its place, under its name only when all is done."""
    from retoma.db.sqlite import Sqlite  # noqa: PLC0415 — a driver costs its import

    path = _path(url)
    part = path.with_name(f"{path.name}.part")
    _forget(part)
    try:
        _write(part, copied.read(WHOLE))
        database = Sqlite(f"sqlite:///{part}")
        try:
            done = database.write_now(lambda tx: _filled(tx, copied, finish), verb="restore")
        finally:
            database.close()
        _sync(part)
        _refuse_file(path)
        path.unlink(missing_ok=True)  # at most an empty file: nobody's
        os.link(part, path)
        _sync(path.parent)
    finally:
        _forget(part)
    return done


def _filled(tx: Transaction, copied: In, finish: Callable[[Transaction], T]) -> T:
    for room in copied.rooms:
        bring_to(tx, room)
    return finish(tx)


def _write(path: Path, source: IO[bytes]) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "wb") as file:
        while block := source.read(BLOCK):
            file.write(block)


def _forget(part: Path) -> None:
    for end in ("", "-wal", "-shm", "-turn"):
        Path(f"{part}{end}").unlink(missing_ok=True)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


# — PostgreSQL —


class _Tables(Out):
    def __init__(
        self, connection: "psycopg.Connection[Any]", tx: Transaction, folder: Path
    ) -> None:
        tx.run(COPYING)
        self._connection = connection
        self._columns = _columns(tx)
        self._folder = folder
        self.about = _about(tx, _counted(tx))

    def pieces(self) -> Iterator[Piece]:
        for name, columns in self._columns.items():
            path = self._folder / f"{name}{TEXT}"
            rows = self._copied(f"COPY {_named(name, columns)} TO STDOUT", path)
            yield Piece(path, (Table(name, rows, columns),))

    def _copied(self, sql: str, path: Path) -> int:
        rows = 0
        with path.open("wb") as file, self._connection.cursor().copy(sql) as copy:
            for block in copy:
                file.write(block)
                rows += bytes(block).count(b"\n")  # one inside a value is written as \\n
        return rows


@contextmanager
def _postgres_out(url: str, folder: Path) -> Iterator[Out]:
    with _translating(), _apart(url) as connection:
        yield _Tables(connection, _transaction(connection, read_only=True), folder)


def _postgres_in(url: str, copied: In, finish: Callable[[Transaction], T]) -> T:
    with _translating(), _apart(url) as connection:
        tx = _transaction(connection)
        tx.run(COPYING)
        _refuse_schema(tx)
        for room in copied.rooms:
            bring_to(tx, room, copied.about.newest(room.name))
        _fill(connection, tx, copied)
        done = _filled(tx, copied, finish)
        tx.commit()
        return done


@contextmanager
def _writing(url: str) -> Iterator[Transaction]:
    with _translating(), _apart(url) as connection:
        yield _transaction(connection)


@contextmanager
def _apart(url: str) -> "Iterator[psycopg.Connection[Any]]":
    from retoma.db.postgres import connect_apart  # noqa: PLC0415 — a driver costs its import

    connection = connect_apart(url)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def _translating() -> Iterator[None]:
    from retoma.db.postgres import translated  # noqa: PLC0415 — likewise

    try:
        yield
    except Exception as error:
        told = translated(error)
        if told is error:
            raise
        raise told from error


def _transaction(connection: "psycopg.Connection[Any]", *, read_only: bool = False) -> Any:
    from retoma.db.postgres import PostgresTransaction  # noqa: PLC0415 — likewise

    return PostgresTransaction(connection, "restore", pooled=True, read_only=read_only)


def _refuse_schema(tx: Transaction) -> None:
    found = tx.one(ANY_TABLE)
    if found is not None:
        raise Unfit(
            say(
                "this database has tables of retoma already, {table} among them: a restore"
                " writes over nothing; name an empty one",
                table=found[0],
            )
        )


def _fill(connection: "psycopg.Connection[Any]", tx: Transaction, copied: In) -> None:
    """As it was, whatever migrations put there and triggers would make of it."""
    there = _columns(tx)
    tables = {each.name: each for each in copied.tables}
    for name in tables.keys() ^ there.keys():
        raise Unfit(
            say("table {name}: the backup and this retoma do not agree on it", name=name)
        )
    names = ", ".join(_named(name) for name in there)
    connection.execute(f"TRUNCATE {names}")
    for name in there:
        connection.execute(f"ALTER TABLE {_named(name)} DISABLE TRIGGER USER")
    for name in _in_order(tx, set(there)):
        _fill_table(connection, tables[name], there[name], copied.read)
    for name in there:
        connection.execute(f"ALTER TABLE {_named(name)} ENABLE TRIGGER USER")
    for column, last in copied.about.ids.items():
        table, _, name = column.rpartition(".")
        tx.all(COUNT_ON, table=_named(table), name=name, last=last)


def _fill_table(
    connection: "psycopg.Connection[Any]", table: Table, there: tuple[str, ...], read: Read
) -> None:
    if set(table.columns) != set(there):
        raise Unfit(
            say("table {name}: the backup and this retoma do not agree on it", name=table.name)
        )
    with (
        read(f"{table.name}{TEXT}") as source,
        connection.cursor().copy(
            f"COPY {_named(table.name, table.columns)} FROM STDIN"
        ) as copy,
    ):
        while block := source.read(BLOCK):
            copy.write(block)


def _named(table: str, columns: tuple[str, ...] = ()) -> str:
    name = quoted("retoma", table)
    return f"{name} ({', '.join(map(quoted, columns))})" if columns else name


def _columns(tx: Transaction) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for table, column in tx.all(COLUMNS):
        found[table] = (*found.get(table, ()), column)
    return found


def _counted(tx: Transaction) -> dict[str, int]:
    return {f"{table}.{name}": last for table, name, last in tx.all(COUNTED)}


def _in_order(tx: Transaction, names: set[str]) -> Iterator[str]:
    """Those first that others refer to."""
    needs: dict[str, set[str]] = {name: set() for name in names}
    for table, other in tx.all(REFERS):
        needs[table].add(other)
    while needs:
        ready = sorted(name for name, on in needs.items() if not on & needs.keys() - {name})
        if not ready:
            raise Unfit(say("these tables refer to each other: {names}", names=sorted(needs)))
        for name in ready:
            del needs[name]
            yield name


DATABASE = adhoc("SELECT value FROM meta WHERE name = 'database'")
AT = adhoc("SELECT clock()")
APPLIED = adhoc("SELECT room, number, name FROM retoma_migrations ORDER BY room, number")
TABLES = adhoc(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    " ORDER BY name",
    "SELECT 1",
)
ANY_TABLE = adhoc(
    "SELECT 1", "SELECT tablename FROM pg_tables WHERE schemaname = 'retoma' LIMIT 1"
)
# A copy may take long, and says values as every server reads them.
COPYING = Statement(
    "copying",
    (),
    adhoc(
        "SELECT 1",
        "SELECT set_config(name, value, true) FROM (VALUES"
        " ('idle_in_transaction_session_timeout', '0'), ('statement_timeout', '0'),"
        " ('lock_timeout', '0'), ('datestyle', 'ISO'), ('intervalstyle', 'postgres'),"
        " ('bytea_output', 'hex'), ('extra_float_digits', '3'), ('client_encoding', 'UTF8'),"
        " ('row_security', 'off')) AS told (name, value)",
    ).postgres,
)
# Without what the server makes itself. Number of a transaction: one of another server means nothing
# here, and a stream would wait for it, or tell of it for ever.
COLUMNS = adhoc(
    "SELECT 1",
    """SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = to_regnamespace('retoma') AND c.relkind = 'r' AND a.attnum > 0
  AND NOT a.attisdropped AND a.attgenerated = '' AND a.atttypid <> to_regtype('xid8')
ORDER BY c.relname, a.attnum""",
)
COUNTED = adhoc(
    "SELECT 1",
    """SELECT c.relname, a.attname, s.last_value
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attidentity <> ''
JOIN pg_sequences s ON to_regclass(format('%I.%I', s.schemaname, s.sequencename))
    = to_regclass(pg_get_serial_sequence(format('retoma.%I', c.relname), a.attname))
WHERE c.relnamespace = to_regnamespace('retoma') AND c.relkind = 'r' AND NOT a.attisdropped
  AND s.last_value IS NOT NULL
ORDER BY c.relname""",
)
COUNT_ON = adhoc("SELECT 1", "SELECT setval(pg_get_serial_sequence(:table, :name), :last)")
REFERS = adhoc(
    "SELECT 1",
    """SELECT c.relname, o.relname FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid JOIN pg_class o ON o.oid = k.confrelid
WHERE k.contype = 'f' AND k.connamespace = to_regnamespace('retoma')""",
)
