"""A host whose wall clock is wrong, or jumps. What tests put into a process before anything else.

`RETOMA_TEST_WALL` names a file of 8 bytes, an offset in microseconds (signed, little-endian), read anew
at each question. It moves what `time` tells of the day and the hour; the clocks that count from
the machine's start stay as they are, as on a real host.
"""

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "RETOMA_TEST_WALL"

real_time_ns = time.time_ns


class Wall:
    """The hand on the wall clock of one host."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.set(0)

    @property
    def environment(self) -> dict[str, str]:
        return {VARIABLE: str(self.path)}

    def set(self, seconds: float) -> None:
        """Wrong by so much from now on."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(descriptor, struct.pack("<q", round(seconds * 1_000_000)), 0)
        finally:
            os.close(descriptor)

    def reader(self) -> Callable[[], int]:
        """Nanoseconds since 1970, by this wall."""
        descriptor = os.open(self.path, os.O_RDONLY)
        return lambda: (
            real_time_ns() + struct.unpack("<q", os.pread(descriptor, 8, 0))[0] * 1000
        )


def hang(path: Path) -> None:
    """From now on this process lives by that wall."""
    told = Wall.__new__(Wall)
    told.path = path
    wall = told.reader()
    gettime, gettime_ns = time.clock_gettime, time.clock_gettime_ns

    def clock_gettime(which: int) -> float:
        return wall() / 1e9 if which == time.CLOCK_REALTIME else gettime(which)

    def clock_gettime_ns(which: int) -> int:
        return wall() if which == time.CLOCK_REALTIME else gettime_ns(which)

    patched: Any = time
    patched.time_ns = wall
    patched.time = lambda: wall() / 1e9
    patched.clock_gettime = clock_gettime
    patched.clock_gettime_ns = clock_gettime_ns


def true_database_clock() -> Callable[[], int]:
    """For the ledger beside PostgreSQL, whose host is another one, with a right clock."""
    return lambda: real_time_ns() // 1000
