"""Time travel over real processes: no test sleeps for a lease.

`RETOMA_TEST_CLOCK` names a file of 8 bytes, an offset in microseconds (signed, little-endian). Every process
that was started with the variable adds it to its clock, in Python and inside SQLite. PostgreSQL reads the same
offset from the one row of `retoma.test_clock`.
"""

import struct
from pathlib import Path

import psycopg

VARIABLE = "RETOMA_TEST_CLOCK"
MICROSECONDS = 1_000_000


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
        self.path.write_bytes(struct.pack("<q", self._offset))
        if self._database_url.startswith("postgresql:"):
            with psycopg.connect(self._database_url, autocommit=True) as connection:
                # The table comes with the schema, in its test build; before that there is nobody to tell.
                there = connection.execute("SELECT to_regclass('retoma.test_clock')").fetchone()
                if there != (None,):
                    connection.execute(
                        "UPDATE retoma.test_clock SET offset_us = %s", [self._offset]
                    )
