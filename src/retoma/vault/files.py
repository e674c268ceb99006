"""Read small files that hold secrets."""

import os
import stat
from pathlib import Path


def read_small(path: Path, most: int) -> tuple[os.stat_result, bytes]:
    """Return the file's status and up to `most` + 1 bytes; no bytes if it is not a regular file."""
    # O_NONBLOCK, because opening a pipe without a writer would wait for ever.
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(number)
        if not stat.S_ISREG(status.st_mode):
            return status, b""
        with os.fdopen(number, "rb", closefd=False) as file:
            return status, file.read(most + 1)
    finally:
        os.close(number)
