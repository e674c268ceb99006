"""What the processes of one Celery worker share: whether it leaves, what was said already, who they are.

Made before they are forked. Pipes, because they need no lock and no clean-up: one that is readable tells
everybody that the worker leaves; a token in another is taken by the first who wants to say something.
"""

import os
from contextlib import suppress
from copy import copy
from multiprocessing import current_process, process

from retoma.dispatch.message import Bad


class Family:
    """One per worker, in all of its processes."""

    def __init__(self) -> None:
        self.leaving, self._tell = _pipe()
        self._unsaid = {bad: _token() for bad in Bad}
        self._process = current_process()

    def tell_leaving(self) -> None:
        """Everybody who watches `leaving` sees it, now or later; nobody reads it."""
        with suppress(BlockingIOError):
            os.write(self._tell, b"!")

    def first(self, bad: Bad) -> bool:
        """Whether nobody in this worker has spoken of it yet."""
        try:
            return os.read(self._unsaid[bad], 1) != b""
        except BlockingIOError:
            return False

    def allow_children(self) -> None:
        """In a child of the prefork pool all of Python takes the process for a daemon of another make
        of multiprocessing, which may have no children and cannot start any. Sync steps run in some."""
        ours = copy(self._process)
        ours._name = current_process().name  # type: ignore[attr-defined]  # noqa: SLF001
        process._current_process = ours  # type: ignore[attr-defined]  # noqa: SLF001

    def close(self) -> None:
        for end in (self.leaving, self._tell, *self._unsaid.values()):
            os.close(end)


def _pipe() -> tuple[int, int]:
    out, in_ = os.pipe()
    os.set_blocking(out, False)
    os.set_blocking(in_, False)
    return out, in_


def _token() -> int:
    out, in_ = _pipe()
    os.write(in_, b"!")
    os.close(in_)
    return out
