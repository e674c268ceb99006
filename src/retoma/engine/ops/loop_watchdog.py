"""End a process whose event loop is held for too long; what it did then is told to the others.

Native code that holds the interpreter's lock stops every thread of ours, the heartbeat included; only a
thread that needs no lock can still write and leave. It writes all stacks into the private folder of this
process. Whichever runner of this user and host takes the jobs back finds them there, and puts them
into the timelines of the jobs.
"""

import asyncio
import faulthandler
import sys
from contextlib import suppress
from typing import TextIO

from retoma.engine.isolation.scratch import find_kept, forget_kept, kept_file
from retoma.engine.log import get_logger

LOOP_LIMIT = 30.0  # seconds: half a lease, and longer than any honest pause
AGAIN = 1.0  # seconds between two windings at most; one costs some 60 µs
PARTS = 4  # of a limit in which it is wound once
STACK = 8_000  # characters
STDERR = 2  # as faulthandler has it: a descriptor, whatever Python calls it by now

log = get_logger("retoma.held_loop")


class LoopWatch:
    """Ends the process (exit code 1) unless the loop runs at least once in `limit` seconds.

    `with LoopWatch(…):`. However the block ends, nothing is armed any more: the process may have other work.
    """

    def __init__(self, boot: str, limit: float) -> None:
        self._boot = boot
        self._limit = limit
        self._file: TextIO | int | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        # Whoever steps through a handler in a debugger holds the loop on purpose.
        if self._limit and self._file is None and sys.gettrace() is None:
            self._file = _opened(self._boot)
            self._wind(self._file)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._file is not None:
            faulthandler.cancel_dump_traceback_later()
            if not isinstance(self._file, int):
                self._file.close()
            self._file = None
            with suppress(OSError):
                kept_file(self._boot).unlink(missing_ok=True)

    def _wind(self, file: TextIO | int) -> None:
        faulthandler.dump_traceback_later(self._limit, exit=True, file=file)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(min(AGAIN, self._limit / PARTS), self._wind, file)


def _opened(boot: str) -> TextIO | int:
    """A file that others of this user find; where none can be made, the log of this process."""
    try:
        return kept_file(boot).open("w")
    except OSError as error:
        log.warning("runner.stacks_go_to_stderr", runner=boot, error=str(error))
        return STDERR


class HeldLoops:
    """Watches the loop of a runner instance, and reads what those have left whose loop was held.

    A simulation hands in its own.
    """

    def watch(self, boot: str, limit: float) -> LoopWatch:
        return LoopWatch(boot, limit)

    def stacks_of(self, boot: str) -> str:
        """What an instance of this user and host wrote before it left; empty where its loop ran."""
        try:
            file = find_kept(boot)
            return "" if file is None else file.read_text(errors="replace")[:STACK].strip()
        except OSError:
            return ""

    def forget(self, boot: str) -> None:
        """Remove what it wrote: everybody has read it."""
        with suppress(OSError):
            forget_kept(boot)
