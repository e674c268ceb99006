"""The schema goes up and down, survives a crash at any statement, and leaves strangers alone (E25)."""

import subprocess
import sys
from pathlib import Path

import apsw
import psycopg
import pytest

from retoma import db
from retoma.db import Unfit, adhoc, migrations
from tests.db import crash_migration
from tests.db.schema import golden, told

OTHER_TEXT = adhoc("UPDATE retoma_migrations SET checksum = 'of another text'")
FUTURE = adhoc(
    "INSERT INTO retoma_migrations VALUES ('engine', 9999, 'later', '', 0)",
    "INSERT INTO retoma_migrations VALUES ('engine', 9999, 'later', '', clock())",
)
APPLIED = adhoc("SELECT number, checksum FROM retoma_migrations ORDER BY number")
NAME = adhoc("SELECT value FROM meta WHERE name = 'database'")


def script(
    url: str, *arguments: str, patience: float = 100
) -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, crash_migration.__file__, url, *arguments]
    return subprocess.run(
        program, capture_output=True, text=True, check=False, timeout=patience
    )


def test_every_migration_has_both_directions_on_both_databases():
    sqlite, postgres = (migrations.migrations(each) for each in ("sqlite", "postgres"))

    assert [(each.number, each.name) for each in sqlite] == [
        (each.number, each.name) for each in postgres
    ]
    assert list(range(1, len(sqlite) + 1)) == [each.number for each in sqlite]


async def test_the_schema_equals_the_golden_file(database):
    await migrations.upgrade(database)

    assert golden(database.dialect).read_text() == await database.read(told)


async def test_up_down_and_up_again_gives_the_same_schema(database):
    await migrations.upgrade(database)
    first = await database.read(told)

    down = await migrations.downgrade(database, to=0)
    empty = await database.read(told)
    up = await migrations.upgrade(database)

    assert ((), up.known) == (down.applied, down.pending)
    assert "jobs" not in empty
    assert up.known == up.applied
    assert first == await database.read(told)


async def test_a_database_from_before_the_first_release_is_refused_and_left_alone(database):
    """Its tables have other names, which no migration changes."""
    await migrations.upgrade(database)
    await database.write(lambda tx: tx.run(OTHER_TEXT), verb="other")
    before = await database.read(told)

    for ask in (migrations.upgrade, migrations.ready, migrations.status):
        with pytest.raises(Unfit, match=r"migration 1 \(engine\) was another one: make a new"):
            await ask(database)

    assert before == await database.read(told)


async def test_asking_twice_changes_nothing(database):
    await migrations.upgrade(database)
    before = await database.read(lambda tx: (tx.all(APPLIED), tx.all(NAME)))

    await migrations.upgrade(database)
    await migrations.ready(database)

    assert before == await database.read(lambda tx: (tx.all(APPLIED), tx.all(NAME)))


async def test_status_says_what_is_missing_and_changes_nothing(database, tmp_path):
    status = await migrations.status(database)

    assert (() == status.applied, status.known) == (True, status.pending)
    assert "" == (await database.read(told)).strip()


@pytest.mark.parametrize(
    "stride", [5, pytest.param(1, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
)
async def test_a_crash_at_any_statement_leaves_all_or_nothing(
    database_url, open_database, stride
):
    """E25: every statement of every migration, or every fifth: killed there, then run again."""
    crashed = script(database_url, "crash", str(stride), patience=900 if stride == 1 else 100)

    assert (0, "") == (crashed.returncode, crashed.stderr)
    assert int(crashed.stdout) > 80 / stride
    database = open_database(database_url)
    assert golden(database.dialect).read_text() == await database.read(told)


async def test_several_processes_may_start_at_once(database_url, open_database):
    started = script(database_url, "together", "4")

    assert (0, "") == (started.returncode, started.stderr)
    database = open_database(database_url)
    assert golden(database.dialect).read_text() == await database.read(told)
    known = len(migrations.migrations(database.dialect))
    assert known == len(await database.read(lambda tx: tx.all(APPLIED)))


async def test_a_newer_schema_is_refused_and_left_alone(database):
    await migrations.upgrade(database)
    await database.write(lambda tx: tx.run(FUTURE), verb="future")
    before = await database.read(lambda tx: (tx.all(APPLIED), told(tx)))

    for ask in (migrations.upgrade, migrations.ready, migrations.status):
        with pytest.raises(Unfit, match=r"schema 9999.* run a newer retoma"):
            await ask(database)

    assert before == await database.read(lambda tx: (tx.all(APPLIED), told(tx)))


# — what is not ours —


def everything_in(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.mark.parametrize("ask", [migrations.upgrade, migrations.ready, migrations.status])
async def test_a_strangers_file_is_refused_and_not_a_byte_is_changed(tmp_path, ask):
    book = apsw.Connection(str(tmp_path / "address book.db"))
    book.execute("CREATE TABLE contacts (name text); INSERT INTO contacts VALUES ('Ana')")
    book.close()
    before = everything_in(tmp_path)
    database = db.open(f"sqlite:///{tmp_path / 'address book.db'}")

    with pytest.raises(Unfit, match=r"not retoma's: it holds 'contacts'"):
        await ask(database)

    database.close()
    assert before == everything_in(tmp_path)


@pytest.mark.parametrize("ask", [migrations.upgrade, migrations.ready, migrations.status])
async def test_a_file_that_is_no_database_is_refused_and_not_a_byte_is_changed(
    tmp_path, open_database, ask
):
    (tmp_path / "letter.txt").write_text("Dear Ana, " * 1_000)
    before = everything_in(tmp_path)

    with pytest.raises(Unfit, match="not a database"):
        await ask(open_database(f"sqlite:///{tmp_path / 'letter.txt'}"))

    assert before == everything_in(tmp_path)


@pytest.mark.parametrize("ask", [migrations.upgrade, migrations.ready, migrations.status])
async def test_a_missing_folder_is_refused_and_not_made(tmp_path, open_database, ask):
    with pytest.raises(Unfit, match="its folder does not exist"):
        await ask(open_database(f"sqlite:///{tmp_path / 'nowhere' / 'work.db'}"))

    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize("ask", [migrations.upgrade, migrations.ready, migrations.status])
async def test_a_strangers_schema_is_refused_and_left_alone(postgres_url, open_database, ask):
    with psycopg.connect(postgres_url, autocommit=True) as stranger:
        stranger.execute("CREATE SCHEMA retoma; CREATE TABLE retoma.contacts (name text)")
    database = open_database(postgres_url)
    before = await database.read(told)

    with pytest.raises(Unfit, match="schema retoma is not retoma's: it holds 'contacts'"):
        await ask(database)

    assert before == await database.read(told)


async def test_tables_of_others_in_the_same_postgres_database_are_no_hindrance(
    postgres_url, postgres
):
    with psycopg.connect(postgres_url, autocommit=True) as neighbour:
        neighbour.execute("CREATE TABLE jobs (mine text); INSERT INTO jobs VALUES ('mine')")

    await migrations.upgrade(postgres)

    with psycopg.connect(postgres_url) as neighbour:
        assert [("mine",)] == neighbour.execute("SELECT * FROM public.jobs").fetchall()


async def test_a_copy_made_by_vacuum_is_still_ours(tmp_path, open_database):
    """Such a copy is not in WAL mode any more; it must become so again."""
    ours = open_database(f"sqlite:///{tmp_path / 'work.db'}")
    await migrations.upgrade(ours)
    admin = apsw.Connection(str(tmp_path / "work.db"))
    admin.execute("VACUUM INTO ?", [str(tmp_path / "copy.db")])
    admin.close()

    copy = open_database(f"sqlite:///{tmp_path / 'copy.db'}")

    assert (await migrations.upgrade(copy)).pending == ()
    mode = await copy.read(lambda tx: tx.one(adhoc("PRAGMA journal_mode")))
    assert ("wal",) == mode
