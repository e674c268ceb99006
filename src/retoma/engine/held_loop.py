"""A loop that is held too long: its stacks are written, the process leaves, others take over.

Native code that holds the interpreter's lock stops every thread of ours, the beat included; only a
thread that needs no lock can still write and leave. Whatever runner of this host takes the jobs
back finds the stacks in a folder they share, and puts them into the jobs' timelines.
"""

import asyncio
import faulthandler
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from retoma.engine.log import get_logger

LOOP_LIMIT = 30.0  # seconds: half a lease, and longer than any honest pause
AGAIN = 1.0  # seconds between two windings at most; one costs some 60 µs
PARTS = 4  # of a limit in which it is wound once
STACK = 8_000  # characters
STDERR = 2  # as faulthandler has it: a descriptor, whatever Python calls it by now

log = get_logger("retoma.held_loop")


class LoopWatch:
    """Wound up by the loop; when nobody winds it, the process leaves (exit code 1)."""

    def __init__(self, boot: str, limit: float) -> None:
        self._boot = boot
        self._limit = limit
        self._file: TextIO | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        # Whoever steps through a story in a debugger holds the loop on purpose.
        if self._limit and sys.gettrace() is None:
            self._file = _opened(self._boot)
            self._wind()

    def stop(self) -> None:
        if self._file is None or self._timer is None:
            return
        self._timer.cancel()
        faulthandler.cancel_dump_traceback_later()
        self._file.close()
        forget(self._boot)

    def _wind(self) -> None:
        if self._file is not None:
            faulthandler.dump_traceback_later(self._limit, exit=True, file=self._file)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(min(AGAIN, self._limit / PARTS), self._wind)


def _opened(boot: str) -> TextIO:
    """Where others of this host look; where that cannot be had, whoever reads our log."""
    try:
        return _place(boot).open("w")
    except OSError as error:
        log.warning("runner.stacks_go_to_stderr", runner=boot, error=str(error))
        return os.fdopen(os.dup(STDERR), "w")


def stacks_of(boot: str) -> str:
    """What a boot of this host wrote before it left; empty where it had no such trouble."""
    try:
        return _place(boot).read_text(errors="replace")[:STACK].strip()
    except OSError:
        return ""


def forget(boot: str) -> None:
    with suppress(OSError):
        _place(boot).unlink()


def _place(boot: str) -> Path:
    folder = Path(tempfile.gettempdir()) / f"retoma-loops-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise PermissionError(
            f"{folder} belongs to somebody else: the stacks of a held loop go there"
        )
    return folder / boot
