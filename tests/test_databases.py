"""A database that is handed on is as new, whatever was done to it: the tests rest on it."""

from collections.abc import Callable
from typing import Any

import apsw
import psycopg
import pytest

from tests.clock import TEST_BUILD
from tests.databases import ENGINE_ONLY, Files, Recycled, Rooms
from tests.db.schema import TOLD, golden

DIRT = {
    "rows": "INSERT INTO people (name, role, created_at) VALUES ('Ana', 'admin', now())",
    "a counter": "SELECT nextval(pg_get_serial_sequence('people', 'id'))",
    "a seed changed": "UPDATE duties SET term = 7",
    "a seed gone": "DELETE FROM duties WHERE name = 'fold'; DELETE FROM retoma_migrations",
    "the clock": TEST_BUILD,
    "a function": "CREATE OR REPLACE FUNCTION retoma.clock() RETURNS timestamptz LANGUAGE sql"
    " VOLATILE AS 'SELECT now()'",
    "many rows": "INSERT INTO meta SELECT 'n ' || n, repeat('x', 99) FROM generate_series(1, 9999) n",
}
BROKEN = {
    "a table": "CREATE TABLE retoma.mine (n int)",
    "a table of its own": "CREATE TABLE public.mine (n int)",
    "a table gone": "DROP TABLE knobs CASCADE",
    "a column": "ALTER TABLE jobs ADD COLUMN mine int",
    "a default": "ALTER TABLE people ALTER COLUMN name SET DEFAULT 'Ana'",
    "a constraint": "ALTER TABLE people ADD CHECK (name <> 'Ana')",
    "an index": "CREATE INDEX mine ON jobs (id, kind)",
    "a trigger": "ALTER TABLE events DISABLE TRIGGER events_are_immutable",
    "a function more": "CREATE FUNCTION retoma.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "a view": "CREATE VIEW public.mine AS SELECT 1 AS n",
    "a right": "GRANT SELECT ON jobs TO public",
    "a schema": "CREATE SCHEMA mine; CREATE TABLE mine.mine (n int)",
    "statistics": "INSERT INTO meta VALUES ('a', 'b'); ANALYZE meta",
}

# What is different in each on purpose is left out: its name, and when it was made.
THINGS = """
SELECT CASE relname WHEN 'meta' THEN '(SELECT * FROM meta WHERE name <> ''database'') t'
    WHEN 'retoma_migrations' THEN '(SELECT room, number, checksum FROM retoma_migrations) t'
    ELSE format('%I.%I', nspname, relname) END,
    relacl, relkind = 'r' AND (reltuples <> -1 OR pg_relation_size(c.oid) > 10 * 8192)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'v', 'S') AND c.oid >= 16384 ORDER BY 1
"""

Databases = Callable[[Rooms], Recycled]


@pytest.fixture
def handed(postgres_databases: Databases) -> Recycled:
    """One that has been used before, so that it need not be made for this test."""
    recycled = postgres_databases(ENGINE_ONLY)
    recycled.hand_over()
    return recycled


@pytest.mark.parametrize("dirt", DIRT)
def test_what_a_test_leaves_is_taken_away(handed, dirt):
    before, made = everything_in(handed.url), handed.anew
    spoil(handed.url, DIRT[dirt])
    assert before != everything_in(handed.url), "nothing was spoiled"

    handed.hand_over()

    assert before == settled(handed, before)
    assert made == handed.anew


@pytest.mark.parametrize("broken", BROKEN)
def test_one_that_cannot_be_mended_is_made_anew(handed, broken):
    before, made = everything_in(handed.url), handed.anew
    spoil(handed.url, BROKEN[broken])

    handed.hand_over()

    assert before == everything_in(handed.url)
    assert made + 1 == handed.anew


def test_one_that_somebody_is_still_in_is_made_anew_and_they_are_cut_off(handed):
    made = handed.anew
    with psycopg.connect(handed.url) as left:
        left.execute(
            "INSERT INTO retoma.people (name, role, created_at) VALUES ('Ana', 'admin', now())"
        )

        handed.hand_over()

        assert made + 1 == handed.anew
        with pytest.raises(psycopg.OperationalError):
            left.execute("SELECT 1")
        left.close()


def test_what_the_schema_forbids_is_forbidden_again(handed):
    """It is cleaned with the triggers asleep; nobody else finds them so."""
    spoil(handed.url, DIRT["rows"])
    handed.hand_over()

    with psycopg.connect(handed.url) as connection:
        role = connection.execute("SHOW session_replication_role").fetchone()
        assert ("origin",) == role
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            connection.execute(
                "INSERT INTO retoma.pool_items (pool, name, value) VALUES ('none', 'a', '{}')"
            )


def test_each_has_a_name_of_its_own(handed):
    first = name_of(handed.url)

    handed.hand_over()

    assert first != name_of(handed.url)


def test_a_file_is_a_copy_that_nobody_else_has(tmp_path):
    (tmp_path / "made").mkdir()
    files = Files(tmp_path / "made")
    paths = [tmp_path / f"{n}.db" for n in (1, 2)]
    names = set()
    for path in paths:
        files.lay(path, ENGINE_ONLY)
        with_file = apsw.Connection(str(path))
        told = [sql.rstrip() for (sql,) in with_file.execute(TOLD.sqlite[0].sql)]
        names |= set(with_file.execute("SELECT value FROM meta WHERE name = 'database'"))
        with_file.execute("DELETE FROM meta; DROP TABLE jobs")
        with_file.close()
        assert golden("sqlite").read_text() == "\n".join(told) + "\n"

    assert 2 == len(names)
    assert [0o600, 0o600] == [path.stat().st_mode & 0o777 for path in paths]


def test_where_nothing_is_asked_for_there_is_no_file(tmp_path):
    Files(tmp_path).lay(tmp_path / "work.db", ())

    assert [] == list(tmp_path.iterdir())


def spoil(url: str, how: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = retoma, public")
        connection.execute(how.encode())


def everything_in(url: str) -> list[Any]:
    """The schema, every row, where each counter stands, how large it is: asked in ways of our own."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = retoma, public")
        found: list[Any] = [connection.execute(TOLD.postgres[0].sql, []).fetchall()]
        found.append(connection.execute(THINGS).fetchall())
        for name, *_ in found[1]:
            rows = connection.execute(f"SELECT * FROM {name}".encode())  # noqa: S608
            found.append(sorted(map(str, rows.fetchall())))
        return found


def settled(handed: Recycled, before: list[Any]) -> list[Any]:
    """What is in it; once more, where autovacuum has looked at a table in between."""
    found = everything_in(handed.url)
    if found != before and [row[:1] for row in found[1]] == [row[:1] for row in before[1]]:
        handed.hand_over()
        found = everything_in(handed.url)
    return found


def name_of(url: str) -> object:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT value FROM retoma.meta WHERE name = 'database'"
        ).fetchone()
