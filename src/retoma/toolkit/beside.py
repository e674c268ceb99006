"""A loop of ours in a thread of its own, for code that is not async: it asks, and waits for the answer."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Beside:
    """One for a process, whatever else runs a loop in it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="retoma-beside", daemon=True)
        self._thread.start()

    def ask(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


def one_at_a_time() -> "threading.Lock":
    """For threads of such code, which may come together."""
    return threading.Lock()
