"""A loop of ours in a thread of its own, for code that is not async: it asks, and waits for the answer."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from retoma.engine.loop_thread import LoopThread

T = TypeVar("T")


class Beside:
    """One for a process, whatever else runs a loop in it."""

    def __init__(self) -> None:
        self._thread = LoopThread("retoma-beside")

    def ask(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._thread.loop).result()

    def close(self) -> None:
        self._thread.stop()


def one_at_a_time() -> "threading.Lock":
    """For threads of such code, which may come together."""
    return threading.Lock()
