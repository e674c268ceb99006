"""What only the embedded database must show: turns, a full disk, other people's locks."""

import asyncio
import os
import resource
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from retoma import Context, Retoma, State, db
from retoma.db import Call, Full, ReplyLost, Transaction, adhoc
from retoma.db.database import EVERYTHING
from tests import nursery
from tests.db import turns
from tests.prove import files
from tests.prove.places import Place

MAKE = adhoc("CREATE TABLE notes (id integer PRIMARY KEY, text text)")
ADD = adhoc("INSERT INTO notes (text) VALUES (:text)")
COUNT = adhoc("SELECT count(*) FROM notes")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "work.db"


@pytest.fixture
def sqlite(path, open_database) -> db.Database:
    database: db.Database = open_database(f"sqlite:///{path}")
    return database


async def prepare(database: db.Database) -> None:
    await database.write(lambda tx: tx.run(MAKE), verb="make")


def add(text: str = "note") -> Any:
    return lambda tx: tx.run(ADD, text=text)


async def count(database: db.Database) -> int:
    row = await database.read(lambda tx: tx.one(COUNT))
    assert row is not None
    return int(row[0])


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


async def test_what_cannot_be_checkpointed_at_the_end_is_closed_all_the_same(path):
    """The commit is in the log. Sockets were left open: nobody came to close them."""
    database = db.open(f"sqlite:///{path}")
    spoiler = files.Spoiler(lambda _: None)
    vfs = files.FaultVFS(spoiler)
    try:
        before = open_files()
        await prepare(database)
        await database.write(add(), verb="add")
        assert {EVERYTHING} == await asyncio.to_thread(database.wait_bell, 0)
        spoiler.arm(Place("file", "db.write", 0), files.Fault.IOERR)

        database.close()

        assert spoiler.hit
        assert before == open_files()
    finally:
        spoiler.disarm()
        vfs.unregister()
    again = db.open(f"sqlite:///{path}")
    assert 1 == await count(again)
    again.close()


# — several processes —


async def test_processes_that_write_all_they_can_wait_for_a_turn_and_not_for_sqlite(
    sqlite, path
):
    """MECHANICS 22: SQLite's own waiting gave one of them forty times what another got."""
    await sqlite.write(
        lambda tx: tx.run(adhoc("CREATE TABLE turns (id integer PRIMARY KEY, writer int)")),
        verb="make",
    )
    url = f"sqlite:///{path}?synchronous=normal"

    codes = await asyncio.to_thread(race, [sys.executable, turns.__file__, url, "100"], 3)

    assert [0, 0, 0] == codes
    written = adhoc("SELECT count(*) FROM turns GROUP BY writer")
    assert [(100 * turns.ROWS,)] * 3 == await sqlite.read(lambda tx: tx.all(written))


def race(program: list[str], n: int) -> list[int]:
    processes = [talking_to(program) for _ in range(n)]
    for each in processes:
        assert "ready\n" == each.stdout.readline()
    for each in processes:
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in processes:
        each.communicate(timeout=60)
    return [each.returncode for each in processes]


def talking_to(program: list[str]) -> Any:
    pipe = subprocess.PIPE
    return nursery.Born(program, stdin=pipe, stdout=pipe, text=True)


async def test_somebody_elses_lock_only_delays_us(sqlite, path):
    """F9: another program holds the file exclusively for 0.3 s."""
    await prepare(sqlite)
    stranger = apsw.Connection(str(path))
    stranger.execute("BEGIN EXCLUSIVE")
    letting_go = threading.Timer(0.3, lambda: stranger.execute("COMMIT"))
    letting_go.start()
    began = asyncio.get_running_loop().time()

    assert 0 == await count(sqlite)  # reading is never delayed
    assert 1 == await sqlite.write(add(), verb="add", patience=0)

    assert 0.2 < asyncio.get_running_loop().time() - began < 5
    letting_go.join()
    stranger.close()
    assert 1 == await count(sqlite)


@pytest.mark.parametrize("askers", [1, 2], ids=["alone", "among others"])
async def test_nobody_writes_between_what_a_transaction_reads_and_what_it_writes(
    sqlite, path, askers
):
    """F9: its first question takes the file, so that no stranger makes what it has read untrue."""
    await prepare(sqlite)
    stranger = apsw.Connection(str(path))

    def add_one_more(tx: Transaction) -> int:
        [(there,)] = tx.all(COUNT)
        with pytest.raises(apsw.BusyError):
            stranger.execute("INSERT INTO notes (text) VALUES ('between')")
        tx.run(ADD, text="note")
        return int(there)

    asked = [sqlite.write(add_one_more, verb="add", patience=0) for _ in range(askers)]
    found = await asyncio.gather(*asked)

    stranger.close()
    assert [*range(askers)] == sorted(found)
    assert askers == await count(sqlite)


async def test_another_program_may_read_at_leisure(sqlite, path):
    """A reader of another make, in the middle of its reading, hinders no write and sees no half."""
    await prepare(sqlite)
    await sqlite.write(add(), verb="add")
    reader = talking_to([sys.executable, "-c", READER, str(path)])
    assert "1\n" == reader.stdout.readline()

    for _ in range(20):
        await sqlite.write(add(), verb="add", patience=0)

    told, _ = await asyncio.to_thread(reader.communicate, "go\n", 20)
    assert "1\n21\n" == told
    assert 0 == reader.returncode


READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
count = lambda: print(connection.execute("SELECT count(*) FROM notes").fetchone()[0], flush=True)
connection.execute("BEGIN"); count()
sys.stdin.readline(); count()
connection.execute("COMMIT"); count()
"""


# — who may look —


async def test_the_file_and_all_beside_it_belong_to_us_alone(sqlite, path, tmp_path):
    before = os.umask(0)
    try:
        await prepare(sqlite)
    finally:
        os.umask(before)

    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    assert {f"work.db{end}": 0o600 for end in ("", "-wal", "-shm", "-turn")} == modes


# — no room —


def room_for(pages: int) -> Any:
    return lambda tx: tx.one(adhoc(f"PRAGMA max_page_count = {pages}"))


async def test_a_full_disk_is_told_and_recovers_without_a_restart(sqlite):
    """F8: nothing is corrupted, what was committed stays, room that comes back is used."""
    await prepare(sqlite)
    await sqlite.write(room_for(12), verb="room")

    kept = await fill(sqlite)

    assert 0 < kept == await count(sqlite)
    await sqlite.write(room_for(10_000), verb="room")
    assert 1 == await sqlite.write(add("x" * 2_000), verb="add", patience=0)
    assert ("ok",) == await sqlite.read(lambda tx: tx.one(adhoc("PRAGMA integrity_check")))


async def fill(database: db.Database) -> int:
    """How many rows had room before the first that had none."""
    for kept in range(1_000):
        try:
            await database.write(add("x" * 2_000), verb="add", patience=0)
        except Full:
            return kept
    raise AssertionError("it never got full")


async def test_of_askers_that_share_a_commit_only_the_one_without_room_fails(sqlite):
    await prepare(sqlite)
    await sqlite.write(room_for(20), verb="room")

    told = await asyncio.gather(
        *(sqlite.write(add(text), verb="add") for text in ("small", "x" * 200_000, "small")),
        return_exceptions=True,
    )

    assert [int, Full, int] == [type(each) for each in told]
    assert 2 == await count(sqlite)


async def test_a_runner_waits_while_there_is_no_room_and_then_goes_on(path):
    """F8: jobs are neither lost nor failed by a full disk; their stories are not told twice."""
    told: list[int] = []
    all_told = asyncio.Event()
    app = Retoma(f"sqlite:///{path}")

    @app.job
    async def fill(ctx: Context, n: int) -> str:
        told.append(n)
        if len(told) == 20:
            all_told.set()
        return await ctx.step("text", make_text)

    async def make_text() -> str:
        return "x" * 20_000

    async with app:
        batch = await app.submit_many(fill, range(20))
        database = await app.database()
        row = await database.read(lambda tx: tx.one(adhoc("PRAGMA page_count")))
        assert row is not None
        await database.write(room_for(row[0] + 20), verb="room")
        running = asyncio.create_task(app.run(until_idle=True, tick=0.2))
        await asyncio.wait_for(all_told.wait(), 20)
        await asyncio.sleep(0.3)
        assert not running.done()

        await database.write(room_for(100_000), verb="room")
        await asyncio.wait_for(running, 20)

        assert {State.DONE: 20} == await batch.counts()
        assert list(range(20)) == sorted(told)


# — a commit that meets an I/O error —


class FilesMayNotGrow:
    """From now on every write past this size of a file of this process is an I/O error."""

    def __init__(self) -> None:
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def begin(self, size: int) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, self._before[1]))

    def end(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


@pytest.fixture
def limit() -> Iterator[FilesMayNotGrow]:
    made = FilesMayNotGrow()
    yield made
    made.end()


def log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


async def test_a_commit_that_met_an_io_error_is_in_doubt_where_it_was_never_repeated(
    sqlite, path, limit
):
    await prepare(sqlite)
    log = log_of(path)

    def write(tx: Transaction) -> None:
        tx.run(ADD, text="note")
        limit.begin(log.stat().st_size)

    with pytest.raises(ReplyLost):
        await sqlite.write(write, verb="add", patience=0)
    limit.end()

    assert 0 == await count(sqlite)


async def test_a_commit_that_met_an_io_error_is_repeated_and_happens_once(sqlite, path, limit):
    await prepare(sqlite)
    tries: list[int] = []
    log = log_of(path)

    def write(tx: Transaction) -> None:
        limit.end()
        tries.append(1)
        tx.run(ADD, text="note")
        if len(tries) == 1:
            limit.begin(log.stat().st_size)

    await sqlite.write(write, verb="add")

    assert 2 == len(tries)
    assert 1 == await count(sqlite)


async def test_a_commit_of_one_statement_that_met_an_io_error_is_in_doubt_too(
    sqlite, path, limit
):
    await prepare(sqlite)
    limit.begin(log_of(path).stat().st_size)

    with pytest.raises(ReplyLost):
        await sqlite.write(
            lambda tx: tx.finish(Call(ADD, {"text": "note"})), verb="add", patience=0
        )
