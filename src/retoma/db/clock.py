"""The time a database tells, and the offset by which tests may move it for many processes at once.

`RETOMA_TEST_CLOCK` names a file of 8 bytes: microseconds, signed, little-endian. It is read
anew at each question, so a test that writes it moves the time of every process that was
started with it. Without the variable there is no offset and nothing is read.
"""

import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress

from retoma.db.statements import adhoc

# PostgreSQL has a clock of its own. This one goes on by what a session was told, and tells the
# plain time to a session that was told nothing.
MOVABLE_CLOCK = adhoc(
    "SELECT 1",
    """
CREATE OR REPLACE FUNCTION retoma.clock() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
    SELECT clock_timestamp() + interval '1 microsecond' * CAST(
        coalesce(nullif(current_setting('retoma.moved', true), ''), '0') AS bigint) $$;
""",
)


def offset_reader() -> Callable[[], int]:
    """A function that tells the test offset in microseconds: always 0 outside tests."""
    path = os.environ.get("RETOMA_TEST_CLOCK")
    if not path:
        return lambda: 0
    return _OffsetFile(path).read


class _OffsetFile:
    """The file of the offset, open as long as something reads it."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)

    def read(self) -> int:
        offset: int = struct.unpack("<q", os.pread(self._descriptor, 8, 0).ljust(8, b"\0"))[0]
        return offset

    def __del__(self) -> None:
        # A process that opens many databases one after the other, as tests do, keeps none of their files.
        with suppress(AttributeError, OSError):
            os.close(self._descriptor)


def database_clock(moved: Callable[[], int] | None = None) -> Callable[[], int]:
    """The clock of the embedded database: microseconds since 1970, UTC.

    `moved`: how far a test in this process has moved it.
    """
    offset = offset_reader()
    if moved is None:
        return lambda: time.time_ns() // 1000 + offset()
    return lambda: time.time_ns() // 1000 + offset() + moved()
