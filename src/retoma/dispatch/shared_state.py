"""State that the processes of one Celery worker share: whether the worker leaves, and which warnings were logged.

Made before the worker forks. It uses pipes, which need no lock and no clean-up: a readable `leaving` pipe
tells every process that the worker leaves; each warning has a pipe with one token, which one process takes.
"""

import os
from contextlib import suppress
from copy import copy
from multiprocessing import current_process, process

from retoma.dispatch.message import IgnoreReason


class SharedState:
    """One per worker, made before the fork and used in all of its processes."""

    def __init__(self) -> None:
        self.leaving, self._leaving_end = _pipe()
        self._warnings_left = {reason: _token() for reason in IgnoreReason}
        self._process = current_process()

    def signal_leaving(self) -> None:
        """Make `leaving` readable in every process. The byte is never read."""
        with suppress(BlockingIOError):
            os.write(self._leaving_end, b"!")

    def take_warning(self, reason: IgnoreReason) -> bool:
        """Return True for the first caller in this worker, who then logs the warning."""
        try:
            return os.read(self._warnings_left[reason], 1) != b""
        except BlockingIOError:
            return False

    def allow_children(self) -> None:
        """Let a process of the prefork pool start child processes, which sync steps need.

        Celery's pool marks its processes as daemons, which multiprocessing forbids to have children."""
        ours = copy(self._process)
        ours._name = current_process().name  # type: ignore[attr-defined]  # noqa: SLF001
        process._current_process = ours  # type: ignore[attr-defined]  # noqa: SLF001

    def close(self) -> None:
        for end in (self.leaving, self._leaving_end, *self._warnings_left.values()):
            os.close(end)


def _pipe() -> tuple[int, int]:
    out, in_ = os.pipe()
    os.set_blocking(out, False)
    os.set_blocking(in_, False)
    return out, in_


def _token() -> int:
    """Make a pipe that holds one byte."""
    out, in_ = _pipe()
    os.write(in_, b"!")
    os.close(in_)
    return out
