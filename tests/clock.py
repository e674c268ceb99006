"""Time travel over real processes: no test sleeps for a lease.

`RETOMA_TEST_CLOCK` names a file of 8 bytes, an offset in microseconds (signed, little-endian). Every process
that was started with the variable adds it to its clock, in Python and inside SQLite. PostgreSQL has its own
clock: the first jump gives it the test build of `clock()`, which adds the one row of `retoma.test_clock`.
"""

import os
import struct
from pathlib import Path

import psycopg

VARIABLE = "RETOMA_TEST_CLOCK"
MICROSECONDS = 1_000_000

TEST_BUILD = """
CREATE TABLE retoma.test_clock (offset_us bigint NOT NULL);
INSERT INTO retoma.test_clock VALUES (0);
CREATE OR REPLACE FUNCTION retoma.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
AS 'SELECT clock_timestamp() + offset_us * interval ''1 microsecond'' FROM retoma.test_clock';
"""


class TestClock:
    """The one offset of a test, written where each of its processes will read it."""

    __test__ = False  # a helper, not a class of tests

    def __init__(self, path: Path, database_url: str) -> None:
        self.path = path
        self._database_url = database_url
        self._offset = 0
        self._write()

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs in order to share this clock."""
        return {VARIABLE: str(self.path)}

    def jump(self, seconds: float) -> None:
        """Everybody's time is `seconds` later from now on (or earlier)."""
        self._offset += round(seconds * MICROSECONDS)
        self._write()

    def _write(self) -> None:
        # The database first: who finds himself late by the file must not act by its old time.
        if self._database_url.startswith("postgresql:"):
            with psycopg.connect(self._database_url) as connection:
                move_postgres(connection, self._offset)
        # In place: whoever reads meanwhile sees the old offset or the new one, never none.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(descriptor, struct.pack("<q", self._offset), 0)
        finally:
            os.close(descriptor)


def move_postgres(connection: psycopg.Connection, offset_us: int) -> None:
    """Tell this database's clock(), if its schema is there already."""
    if connection.execute("SELECT to_regproc('retoma.clock')").fetchone() == (None,):
        return
    if connection.execute("SELECT to_regclass('retoma.test_clock')").fetchone() == (None,):
        if offset_us == 0:
            return
        connection.execute(TEST_BUILD)
    connection.execute("UPDATE retoma.test_clock SET offset_us = %s", [offset_us])
