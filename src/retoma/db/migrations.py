"""Numbered SQL, up and down, one transaction each, safe when two processes start at once.

`0001_engine.sqlite.up.sql`: number, name, database, direction. What has been applied stands in
the table `migrations`, a row per room and number, so that applications can have their own.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Literal

from retoma.db.database import OURS, Database, Transaction, Unfit
from retoma.db.names import quoted
from retoma.db.statements import Statement, Text, adhoc, split
from retoma.words import say

_FILE = re.compile(r"(\d{4})_(\w+)\.(sqlite|postgres)\.(up|down)\.sql")

Direction = Literal["up", "down"]


class PublicViews(StrEnum):
    """Where the tables of a design document are seen under their plain names."""

    AUTO = "auto"  # in `public`, where nothing else is in it
    ON = "on"  # in `public`, under each name that is free
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Room:
    """Whose migrations: each room counts its own."""

    name: str
    package: str  # that holds them
    views: tuple[str, ...] = ()  # of its schema that are shown in `public` as well: PostgreSQL
    public: PublicViews = PublicViews.AUTO


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
    await database.write(lambda tx: _show(tx, room), verb="migrate")
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
    shown = _hide(tx, room) if chosen else []
    for each in chosen:
        _run(tx, each.up)
        told = {"number": each.number, "name": each.name, "sum": each.checksum}
        tx.run(RECORD, room=room.name, **told)
    _show_again(tx, shown)
    return len(chosen)


def _undo_last(tx: Transaction, room: Room, known: list[Migration], to: int) -> int | None:
    applied = _prepared(tx, room)
    _refuse_unknown(applied, known)
    for each in reversed(known):
        if each.number in applied and each.number > to:
            shown = _hide(tx, room)
            _run(tx, each.down)
            tx.run(FORGET, room=room.name, number=each.number)
            _show_again(tx, shown)
            return each.number
    return None


def _hide(tx: Transaction, room: Room) -> list[str]:
    """Nothing in `public` stands on what a migration changes; which views stood there."""
    if tx.dialect != "postgres" or not room.views:
        return []
    ours = [name for (name,) in tx.all(OUR_VIEWS) if name in room.views]
    for name in ours:
        tx.run(_ddl(f"DROP VIEW {quoted('public', name)}"))
    return ours


def _show(tx: Transaction, room: Room) -> None:
    """The views of a room in `public`, as `public` says; those that are there stay, but for `off`."""
    if tx.dialect != "postgres" or not room.views:
        return
    if room.public is PublicViews.OFF:
        _hide(tx, room)
        return
    [(may, others)] = tx.all(PUBLIC_SCHEMA)
    if may and (room.public is PublicViews.ON or not others):
        _show_again(tx, room.views)


def _show_again(tx: Transaction, names: Iterable[str]) -> None:
    """Those of them that there are; a name that somebody else has is left alone."""
    for name in names:
        if tx.one(FREE_VIEW, name=name) is None:
            continue
        shown = quoted("public", name)
        tx.run(_ddl(f"CREATE VIEW {shown} AS SELECT * FROM {quoted('retoma', name)}"))  # noqa: S608 — quoted
        tx.run(_ddl(f"COMMENT ON VIEW {shown} IS '{OUR_COMMENT}'"))


def _ddl(sql: str) -> Statement:
    return Statement("migrate", (), (Text(sql, answers=False),))


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
    """Raise where the database was made by a newer retoma, or by one from before the first release."""
    for each in known:
        if applied.get(each.number, each.checksum) != each.checksum:
            raise Unfit(
                say(
                    "the database was made by a retoma from before the first release, whose"
                    " migration {number} ({name}) was another one: make a new database, or use"
                    " the retoma that made this one",
                    number=each.number,
                    name=each.name,
                )
            )
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
OUR_COMMENT = "shown by retoma: RETOMA_PUBLIC_VIEWS"
OUR_VIEWS = adhoc(
    "SELECT NULL WHERE FALSE",
    f"""SELECT c.relname FROM pg_class c
    WHERE c.relnamespace = to_regnamespace('public') AND c.relkind = 'v'
      AND obj_description(c.oid, 'pg_class') = '{OUR_COMMENT}' ORDER BY 1""",  # noqa: S608
)
# Whether we may make something there, and how much somebody else has there.
PUBLIC_SCHEMA = adhoc(
    "SELECT FALSE, 0",
    f"""SELECT to_regnamespace('public') IS NOT NULL
       AND has_schema_privilege('public', 'CREATE'),
       (SELECT count(*) FROM pg_class c
        WHERE c.relnamespace = to_regnamespace('public') AND c.relkind IN ('r', 'v', 'm', 'p', 'f')
          AND obj_description(c.oid, 'pg_class') IS DISTINCT FROM '{OUR_COMMENT}'
          AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e'))""",  # noqa: S608
)
FREE_VIEW = adhoc(
    "SELECT NULL WHERE FALSE",
    """SELECT 1 FROM pg_class v
    WHERE v.relnamespace = to_regnamespace('retoma') AND v.relname = :name AND v.relkind IN ('r', 'v')
    AND NOT EXISTS (SELECT 1 FROM pg_class c
                    WHERE c.relnamespace = to_regnamespace('public') AND c.relname = :name)""",
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
APPLIED = adhoc("SELECT number, checksum FROM retoma_migrations WHERE room = :room")
RECORD = adhoc(
    "INSERT INTO retoma_migrations VALUES (:room, :number, :name, :sum, (SELECT clock()))",
    "INSERT INTO retoma_migrations VALUES (:room, :number, :name, :sum, clock_timestamp())",
)
FORGET = adhoc("DELETE FROM retoma_migrations WHERE room = :room AND number = :number")
