"""The socket under a connection, held a second time, so that somebody else can end a wait on it.

A network that swallows everything ends nothing by itself: whoever waits for an answer would wait
for hours. Cut from another thread, the wait ends as if the server had hung up.
"""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Wire:
    """Under one connection at a time. The connection may close its own socket whenever it likes:
    the number of ours is never given to anybody else before we let go of it."""

    def __init__(self) -> None:
        self._mine = threading.Lock()
        self._socket: socket.socket | None = None

    def lay(self, descriptor: int) -> None:
        self.drop()
        with self._mine:
            self._socket = socket.socket(fileno=os.dup(descriptor))

    def cut(self) -> None:
        with self._mine, suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)

    def drop(self) -> None:
        with self._mine:
            if self._socket is not None:
                self._socket.close()
                self._socket = None

    @contextmanager
    def bounded(self, seconds: float) -> Iterator[None]:
        """What is in here ends after so long, with or without an answer."""
        timer = threading.Timer(seconds, self.cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
