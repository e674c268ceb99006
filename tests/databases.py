"""Databases for the tests, at the schema of today, made once and cleaned between one test and the next.

To migrate costs more than most tests. So a file is a copy of one that was migrated before, and a
database on PostgreSQL is brought back to what it was when it was made: no row but what the migrations
put there, every counter at its start, every function as it was. Whether it is the same again is not
believed but looked at: its catalogue, its rows and its counters are told in one text, when it was made
and before it is handed on. Where the two differ it is made anew.
"""

import asyncio
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import apsw
import psycopg
import pytest
from psycopg import sql

from retoma import db
from retoma.db import migrations
from retoma.db.migrations import ENGINE, Room

Rooms = tuple[Room, ...]

ENGINE_ONLY: Rooms = (ENGINE,)
EMPTY = pytest.mark.parametrize(
    "rooms", [()], ids=["empty"]
)  # for who makes the schema himself

# Where what is proven lies in front of the database, as in a browser, and others ask the same of both.
LATER_ON_POSTGRES = pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgres", marks=pytest.mark.soak)],
    indirect=True,
)

# A table that was never vacuumed is taken for so large by the planner as long as it is no larger; an
# index has two pages as soon as there is anything in it.
PAGES, PAGE = 10, 8192
LOOKS = 60  # after a connection that was closed: the server is not at once done with it
LEAVE_MS = 5_000  # for one that was told to end


def migrate(url: str, rooms: Rooms) -> None:
    """In a thread of its own: where a browser is driven, a loop runs in this one already."""
    with ThreadPoolExecutor(1) as apart:
        apart.submit(_migrate, url, rooms).result()


def _migrate(url: str, rooms: Rooms) -> None:
    with closing(db.open(url)) as database:
        for room in rooms:
            asyncio.run(migrations.upgrade(database, room=room))


# --- SQLite


class Files:
    """Copies of files that were migrated once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[Rooms, Path] = {}

    def lay(self, path: Path, rooms: Rooms) -> None:
        """A database at `path`; none where there is nothing to be in it."""
        if not rooms:
            return
        if rooms not in self._made:
            self._made[rooms] = self._make(rooms)
        shutil.copy(self._made[rooms], path)
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("PRAGMA synchronous = off")
            connection.execute(NAME_FILE)

    def _make(self, rooms: Rooms) -> Path:
        path = self._folder / f"{len(self._made)}.db"
        migrate(f"sqlite:///{path}", rooms)
        with closing(apsw.Connection(str(path))) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path


# --- PostgreSQL


@dataclass(frozen=True, slots=True)
class Made:
    """What a database was when it was made."""

    told: str
    empty: str  # statements that take away all rows
    back: str  # and that put back its own, its counters and its functions


class Recycled:
    """One database on PostgreSQL, handed from test to test."""

    def __init__(self, connection: psycopg.Connection, url: str, rooms: Rooms) -> None:
        self.url = url
        self.anew = 0  # how often it was made
        self._connection = connection
        self._rooms = rooms
        self._made: Made | None = None

    def hand_over(self) -> str:
        """Its address, when it is as it was made, whatever the last test did to it."""
        alone = self._end_others()
        if not (self._rooms and alone and self._made and self._clean(self._made)):
            self._make()
        if self._rooms:
            self._connection.execute(NAME_DATABASE)
        return self.url

    def _end_others(self) -> bool:
        """Whether there was nobody, but who was leaving; whoever stays is cut off and gone."""
        for _ in range(LOOKS):
            left = self._connection.execute(OTHERS).fetchall()
            if not left:
                return True
            self._connection.execute("SELECT pg_sleep(0.005)")
        for (pid,) in left:
            self._connection.execute("SELECT pg_terminate_backend(%s, %s)", [pid, LEAVE_MS])
        return False

    def _make(self) -> None:
        self.anew += 1
        for (name,) in self._connection.execute(SCHEMAS).fetchall():
            drop = sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name))
            self._connection.execute(drop)
        self._connection.execute("CREATE SCHEMA public")
        if self._rooms:
            migrate(self.url, self._rooms)
            self._end_others()
            self._made = self._look()

    def _look(self) -> Made:
        names = [name for (name,) in self._connection.execute(TABLES)]
        put_back = [text for (text,) in self._connection.execute(PUT_BACK)]
        return Made(
            told=self._told(),
            empty=";".join(f"DELETE FROM {name}" for name in names),  # noqa: S608
            back=";".join([*self._rows_of(names), *put_back]),
        )

    def _rows_of(self, names: list[str]) -> Iterator[str]:
        for name in names:
            table = sql.SQL(name)  # quoted by the server
            rows = self._connection.execute(
                sql.SQL("SELECT CAST(t AS text) FROM {} AS t").format(table)
            ).fetchall()
            for (row,) in rows:
                put = sql.SQL(
                    "INSERT INTO {} OVERRIDING SYSTEM VALUE SELECT (CAST({} AS {})).*"
                )
                yield put.format(table, sql.Literal(row), table).as_string()

    def _clean(self, made: Made) -> bool:
        """Bring it back to what it was; False where that did not do."""
        try:
            with self._connection.transaction():
                self._connection.execute(f"{ALONE};{self._grown()}{made.empty};{made.back}")
                return self._told() == made.told
        except psycopg.Error as error:
            if error.sqlstate is None:
                raise  # our own fault, not something that a test did to it
            return False

    def _grown(self) -> str:
        """What empties tables so large, or so well known, that a plan might differ by it."""
        names = [name for (name,) in self._connection.execute(GROWN)]
        return f"TRUNCATE {', '.join(names)} CASCADE; {UNKNOWN};" if names else ""

    def _told(self) -> str:
        names = [name for (name,) in self._connection.execute(TABLES)]
        contents = [f"SELECT '{name}', CAST(t AS text) FROM {name} AS t" for name in names]  # noqa: S608
        rows = self._connection.execute(" UNION ALL ".join([CATALOGUE, *contents])).fetchall()
        return "\n".join(sorted(f"{what} {row}" for what, row in rows))


NAME_FILE = "UPDATE meta SET value = lower(hex(randomblob(16))) WHERE name = 'database'"
NAME_DATABASE = "UPDATE retoma.meta SET value = gen_random_uuid() WHERE name = 'database'"

OTHERS = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
AND backend_type = 'client backend'
"""

SCHEMAS = """
SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
"""

TABLES = """
SELECT format('%I.%I', nspname, relname) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind = 'r' AND nspname IN ('retoma', 'public') ORDER BY 1
"""

GROWN = f"""
SELECT format('%I.%I', nspname, relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind = 'r' AND nspname IN ('retoma', 'public')
AND (pg_relation_size(c.oid) > {PAGES * PAGE} OR reltuples <> -1 OR EXISTS (
    SELECT FROM pg_index WHERE indrelid = c.oid AND pg_relation_size(indexrelid) > 2 * {PAGE}))
"""  # noqa: S608

# TRUNCATE leaves indices of unknown size, where those of a new table are known to be empty.
UNKNOWN = """
UPDATE pg_class SET relpages = 1, reltuples = 0 WHERE oid >= 16384 AND relkind = 'i' AND relpages = 0
"""

PUT_BACK = """
SELECT format('SELECT setval(%s, %s, %L)', seqrelid, coalesce(last, seqstart), last IS NOT NULL)
FROM pg_sequence, pg_sequence_last_value(seqrelid) AS last
UNION ALL
SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = to_regnamespace('retoma')
"""

# No trigger fires and nothing is referred to meanwhile, so that any order will do.
ALONE = """
SET LOCAL session_replication_role = replica; SET LOCAL check_function_bodies = off;
SET LOCAL lock_timeout = '5s'; SET LOCAL client_min_messages = warning;
DROP TABLE IF EXISTS retoma.test_clock
"""

# A row of the catalogue that was written anew has another xmin. Tables and functions are told by what
# they are: to empty the one and to put back the other writes them anew and changes nothing.
CATALOGUE = """
SELECT 'table', concat_ws(' ', oid, relname, relnamespace, relowner, relkind, relpersistence,
    relnatts, relchecks, relrowsecurity, reloptions, relacl, relpages, reltuples)
FROM pg_class WHERE oid >= 16384
UNION ALL SELECT 'function', CAST(p AS text) FROM pg_proc p WHERE oid >= 16384
UNION ALL SELECT 'counter', concat_ws(' ', seqrelid, xmin, pg_sequence_last_value(seqrelid))
FROM pg_sequence
UNION ALL SELECT 'column', md5(string_agg(concat_ws(' ', attrelid, attnum, xmin), ','
    ORDER BY attrelid, attnum)) FROM pg_attribute WHERE attrelid >= 16384
UNION ALL SELECT 'index', concat_ws(' ', indexrelid, xmin) FROM pg_index WHERE indexrelid >= 16384
UNION ALL SELECT 'constraint', concat_ws(' ', oid, xmin) FROM pg_constraint WHERE oid >= 16384
UNION ALL SELECT 'default', concat_ws(' ', oid, xmin) FROM pg_attrdef
UNION ALL SELECT 'trigger', concat_ws(' ', oid, xmin) FROM pg_trigger WHERE oid >= 16384
UNION ALL SELECT 'rule', concat_ws(' ', oid, xmin) FROM pg_rewrite WHERE oid >= 16384
UNION ALL SELECT 'policy', concat_ws(' ', oid, xmin) FROM pg_policy
UNION ALL SELECT 'type', concat_ws(' ', oid, xmin) FROM pg_type WHERE oid >= 16384
UNION ALL SELECT 'schema', concat_ws(' ', oid, xmin) FROM pg_namespace WHERE oid >= 16384
UNION ALL SELECT 'extension', concat_ws(' ', oid, xmin) FROM pg_extension
UNION ALL SELECT 'event trigger', concat_ws(' ', oid, xmin) FROM pg_event_trigger
UNION ALL SELECT 'statistics', CAST(count(*) AS text) FROM pg_statistic WHERE starelid >= 16384
UNION ALL SELECT 'setting', concat_ws(' ', setrole, setconfig) FROM pg_db_role_setting
    JOIN pg_database d ON d.oid = setdatabase AND datname = current_database()
UNION ALL SELECT 'grant', CAST(datacl AS text) FROM pg_database WHERE datname = current_database()
UNION ALL SELECT 'prepared', gid FROM pg_prepared_xacts WHERE database = current_database()
UNION ALL SELECT 'object', CAST(oid AS text) FROM pg_largeobject_metadata
"""
