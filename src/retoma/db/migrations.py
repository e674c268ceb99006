"""Numbered SQL, up and down, one transaction each, safe when two processes start at once.

`0001_engine.sqlite.up.sql`: number, name, database, direction. What has been applied stands in
the table `migrations`, a row per room and number, so that applications can have their own.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from retoma.db.database import OURS, Database, Transaction, Unfit
from retoma.db.statements import Statement, Text, adhoc, split
from retoma.words import say

_FILE = re.compile(r"(\d{4})_(\w+)\.(sqlite|postgres)\.(up|down)\.sql")

Direction = Literal["up", "down"]


@dataclass(frozen=True, slots=True)
class Room:
    """Whose migrations: each room counts its own."""

    name: str
    package: str  # that holds them


ENGINE = Room("engine", "retoma.engine.migrations")


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered change of the schema, for one database."""

    number: int
    name: str
    up: str
    down: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.up.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Status:
    """Where a database stands."""

    applied: tuple[int, ...]
    known: tuple[int, ...]

    @property
    def pending(self) -> tuple[int, ...]:
        return tuple(number for number in self.known if number not in self.applied)


def migrations(dialect: str, room: Room = ENGINE) -> list[Migration]:
    """All of a room's migrations, in order."""
    texts: dict[tuple[int, str], dict[str, str]] = {}
    for file in resources.files(room.package).iterdir():
        found = _FILE.fullmatch(file.name)
        if found and found[3] == dialect:
            parts = texts.setdefault((int(found[1]), found[2]), {})
            parts[found[4]] = file.read_text(encoding="utf-8")
    return [
        Migration(number, name, parts["up"], parts["down"])
        for (number, name), parts in sorted(texts.items())
    ]


async def upgrade(database: Database, *, to: int | None = None, room: Room = ENGINE) -> Status:
    """Apply what is missing, each number in a transaction of its own; where there is nothing yet,
    all in one."""
    await status(database, room)  # refuses a stranger's before anything is opened for writing
    known = migrations(database.dialect, room)
    while await database.write(lambda tx: _apply_next(tx, room, known, to), verb="migrate"):
        pass
    return await status(database, room)


async def downgrade(database: Database, *, to: int, room: Room = ENGINE) -> Status:
    """Undo what is above `to`, newest first."""
    known = migrations(database.dialect, room)
    while True:
        number = await database.write(
            lambda tx: _undo_last(tx, room, known, to), verb="migrate"
        )
        if number is None:
            return await status(database, room)


async def status(database: Database, room: Room = ENGINE) -> Status:
    """What is applied and what this retoma knows. Changes nothing; refuses a stranger's."""
    applied = await database.read(lambda tx: _applied_or_none(tx, room))
    known = migrations(database.dialect, room)
    _refuse_unknown(applied, known)
    return Status(tuple(sorted(applied)), tuple(each.number for each in known))


async def ready(database: Database, room: Room = ENGINE) -> None:
    """As `upgrade`, but asks first: a role without the right to change the schema may run."""
    if (await status(database, room)).pending:
        await upgrade(database, room=room)


def bring_to(tx: Transaction, room: Room, to: int | None = None) -> None:
    """As `upgrade`, in a transaction of the caller's."""
    known = migrations(tx.dialect, room)
    while _apply_next(tx, room, known, to):
        pass


def check(tx: Transaction) -> None:
    """Refuse, in somebody else's transaction, a schema this retoma cannot submit to."""
    if tx.one(HAS_TABLE) is None:
        raise Unfit(
            say("this database has no schema of retoma: call `await app.upgrade()` on it")
        )
    applied: dict[int, str] = dict(tx.all(APPLIED, room=ENGINE.name))
    known = _known(tx.dialect)
    _refuse_unknown(applied, known)
    if any(each.number not in applied for each in known):
        raise Unfit(
            say(
                "the database is at schema {at} and this retoma needs {needs}: call"
                " `await app.upgrade()` on it",
                at=max(applied, default=0),
                needs=known[-1].number,
            )
        )


@cache
def _known(dialect: str) -> list[Migration]:
    """Read once: this is asked for every job that comes by a caller's connection."""
    return migrations(dialect)


def _apply_next(tx: Transaction, room: Room, known: list[Migration], to: int | None) -> int:
    """How many were applied. One by one where somebody works meanwhile: each holds them up briefly."""
    applied = _prepared(tx, room)
    _refuse_unknown(applied, known)
    missing = [
        each
        for each in known
        if each.number not in applied and (to is None or each.number <= to)
    ]
    chosen = missing[:1] if applied else missing
    for each in chosen:
        _run(tx, each.up)
        told = {"number": each.number, "name": each.name, "sum": each.checksum}
        tx.run(RECORD, room=room.name, **told)
    return len(chosen)


def _undo_last(tx: Transaction, room: Room, known: list[Migration], to: int) -> int | None:
    applied = _prepared(tx, room)
    _refuse_unknown(applied, known)
    for each in reversed(known):
        if each.number in applied and each.number > to:
            _run(tx, each.down)
            tx.run(FORGET, room=room.name, number=each.number)
            return each.number
    return None


def _run(tx: Transaction, text: str) -> None:
    for each in _statements(text, tx.dialect):
        tx.run(each)


def _statements(text: str, dialect: str) -> Iterator[Statement]:
    for sql in split(text):
        if dialect == "sqlite":
            yield Statement("migrate", (Text(sql, answers=False),), ())
        else:
            # psycopg reads % as a mark only where there are parameters; a migration has none.
            yield Statement("migrate", (), (Text(sql.replace("%", "%%"), answers=False),))


def _prepared(tx: Transaction, room: Room) -> dict[int, str]:
    """Take the lock that lets one process migrate at a time; make our table; what it says."""
    tx.run(LOCK)  # first: another process may be between its first table and its last
    _refuse_strangers(tx)
    if tx.dialect == "postgres":
        tx.run(CREATE_SCHEMA)
    tx.run(CREATE_TABLES)
    tx.run(NAME_DATABASE)
    return dict(tx.all(APPLIED, room=room.name))


def _applied_or_none(tx: Transaction, room: Room) -> dict[int, str]:
    _refuse_strangers(tx)
    if tx.one(HAS_TABLE) is None:
        return {}
    return dict(tx.all(APPLIED, room=room.name))


def _refuse_strangers(tx: Transaction) -> None:
    if tx.one(HAS_TABLE) is not None:
        return
    strange = tx.one(STRANGE)
    if strange is not None:
        what = "file" if tx.dialect == "sqlite" else "schema retoma"
        raise Unfit(
            say(
                "this {what} is not retoma's: it holds {found!r} and no migrations"
                " of ours; name another database",
                what=what,
                found=strange[0],
            )
        )


def _refuse_unknown(applied: dict[int, str], known: list[Migration]) -> None:
    newest = max((each.number for each in known), default=0)
    beyond = max(applied, default=0)
    if beyond > newest:
        raise Unfit(
            say(
                "the database is at schema {beyond}, this retoma knows up to"
                " {newest}: run a newer retoma, or downgrade the database with the"
                " one that made it",
                beyond=beyond,
                newest=newest,
            )
        )


HAS_TABLE = adhoc(
    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'retoma_migrations'",
    "SELECT 1 FROM pg_tables WHERE schemaname = 'retoma' AND tablename = 'retoma_migrations'",
)
STRANGE = adhoc(
    "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' LIMIT 1",
    "SELECT tablename FROM pg_tables WHERE schemaname = 'retoma' LIMIT 1",
)
LOCK = adhoc(
    f"PRAGMA application_id = {OURS}",
    # Any constant will do, as long as every retoma takes the same one.
    "SELECT pg_advisory_xact_lock(5918112847)",
)
CREATE_SCHEMA = adhoc("SELECT 1", "CREATE SCHEMA IF NOT EXISTS retoma")
CREATE_TABLES = adhoc(
    """
CREATE TABLE IF NOT EXISTS retoma_migrations (
    room text NOT NULL, number integer NOT NULL, name text NOT NULL, checksum text NOT NULL,
    applied_at integer NOT NULL, PRIMARY KEY (room, number)) STRICT;

CREATE TABLE IF NOT EXISTS meta (name text PRIMARY KEY, value text NOT NULL) STRICT;
""",
    """
CREATE TABLE IF NOT EXISTS retoma.retoma_migrations (
    room text NOT NULL, number integer NOT NULL, name text NOT NULL, checksum text NOT NULL,
    applied_at timestamptz NOT NULL, PRIMARY KEY (room, number));

CREATE TABLE IF NOT EXISTS retoma.meta (name text PRIMARY KEY, value text NOT NULL);
""",
)
# The database's own id: a cursor into its events is worth nothing in another one.
NAME_DATABASE = adhoc(
    "INSERT INTO meta VALUES ('database', lower(hex(randomblob(16)))) ON CONFLICT DO NOTHING",
    "INSERT INTO meta VALUES ('database', gen_random_uuid()) ON CONFLICT DO NOTHING",
)
APPLIED = adhoc("SELECT number, name FROM retoma_migrations WHERE room = :room")
RECORD = adhoc(
    "INSERT INTO retoma_migrations VALUES (:room, :number, :name, :sum, (SELECT clock()))",
    "INSERT INTO retoma_migrations VALUES (:room, :number, :name, :sum, clock_timestamp())",
)
FORGET = adhoc("DELETE FROM retoma_migrations WHERE room = :room AND number = :number")
