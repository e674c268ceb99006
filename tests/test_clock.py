"""Time travel: one jump moves the clock of the database and of every process."""

import struct
from pathlib import Path

import psycopg

from retoma.db import migrations
from retoma.db import open as open_database
from retoma.db.clock import database_clock
from retoma.db.statements import adhoc
from tests.clock import TestClock
from tests.databases import EMPTY


async def test_a_jump_moves_the_clock_of_the_database(database_url, test_clock):
    database = open_database(database_url)
    try:
        await migrations.upgrade(database)
        before = await now(database)

        test_clock.jump(3600)
        after = await now(database)

        assert 3600 <= after - before < 3660
    finally:
        database.close()


def test_the_file_holds_the_sum_of_all_jumps(test_clock):
    test_clock.jump(61)
    test_clock.jump(-1.5)

    assert (59_500_000,) == struct.unpack("<q", test_clock.path.read_bytes())


@EMPTY
def test_a_postgres_without_our_schema_is_left_alone(postgres_url, tmp_path):
    TestClock(tmp_path / "clock", postgres_url).jump(1)

    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regclass('retoma.test_clock')").fetchone() == (
            None,
        )


async def now(database) -> float:
    """What the database's clock says, in seconds since 1970."""
    row = await database.read(lambda tx: tx.one(SECONDS))
    return float(row[0])


SECONDS = adhoc(
    "SELECT (SELECT clock()) / 1000000.0", "SELECT extract(epoch FROM (SELECT clock()))"
)


async def test_the_clock_moves_within_a_transaction(database_url):
    """A lease is counted from when it is written, however long its transaction has been open."""
    database = open_database(database_url)

    def moves(tx) -> bool:
        began = tx.all(SECONDS)
        return any(tx.all(SECONDS) > began for _ in range(10_000))

    try:
        assert await database.read(moves)
    finally:
        database.close()


def test_a_clock_that_nobody_reads_any_more_keeps_no_file_open(test_clock):
    """One file for each database of a test was left open: a thousand tests later there were no descriptors."""
    before = len([*Path("/proc/self/fd").iterdir()])

    for _ in range(20):
        database_clock()()

    assert before == len([*Path("/proc/self/fd").iterdir()])
