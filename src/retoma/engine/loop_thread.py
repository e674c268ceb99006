"""An event loop in a thread of its own, for code that is not async."""

import asyncio
import threading

from retoma.engine.log import get_logger

log = get_logger("retoma.loop_thread")


class LoopThread:
    """Runs its loop until it is stopped, whatever a task on it raises.

    asyncio ends a loop with a task that raises SystemExit or KeyboardInterrupt. In this thread nobody would
    notice: whoever asked for something else on the loop would wait for ever.
    """

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._stopping = False
        self._thread.start()

    def stop(self, seconds: float | None = None) -> None:
        """Stop and close the loop; after so many seconds leave it to the end of the process."""
        if self.loop.is_closed():
            return
        self._stopping = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(seconds)
        if not self._thread.is_alive():
            self.loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self._stopping:
            try:
                self.loop.run_forever()
            except BaseException:
                log.exception("loop.interrupted", thread=self._thread.name)
