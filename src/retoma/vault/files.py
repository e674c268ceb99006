"""Small files that hold secrets: read whole, or not at all."""

import os
import stat
from pathlib import Path


def read_small(path: Path, most: int) -> tuple[os.stat_result, bytes]:
    """Its status, and at most one byte more than `most`; nothing of what is no regular file."""
    # Not blocking: opening a pipe that nobody fills would wait for ever.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            return status, b""
        with os.fdopen(number, "rb", closefd=False) as file:
            return status, file.read(most + 1)
    finally:
        os.close(number)
