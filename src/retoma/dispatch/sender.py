"""Send hints in a background thread, so that a submission neither waits for the broker nor fails with it."""

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from retoma.engine.log import get_logger
from retoma.engine.store.hints import Hint

WAITING = 10_000  # queued hints; more are dropped, and their jobs hinted again later
GROUP_SIZE = 500  # hints sent between two checks for a stop
REST = 5.0  # seconds without sending after the broker failed
LAST = 2.0  # seconds for hints that are being sent at close

log = get_logger("retoma.dispatch")


class Sender:
    """Sends queued hints soon, or drops them. A dropped hint does no harm: the job is in the database."""

    def __init__(
        self, send: Callable[[Sequence[Hint]], None], *, rest: float = REST, last: float = LAST
    ) -> None:
        self._send = send
        self._pause = rest
        self._last = last
        self._begin()

    def _begin(self) -> None:
        """Reset all state. A forked process needs it: threads are not inherited, and a lock may be held."""
        self._pid = os.getpid()
        self._changed = threading.Condition()
        self._waiting: deque[Hint] = deque()
        self._thread: threading.Thread | None = None
        self._sending = False
        self._closing = False
        self._resting = False
        self._failing = False
        self.dropped = 0

    def put(self, hints: Sequence[Hint]) -> None:
        if self._pid != os.getpid():
            self._begin()
        with self._changed:
            free = 0 if self._resting else WAITING - len(self._waiting)
            self._waiting.extend(islice(hints, free))
            self.dropped += max(len(hints) - free, 0)
            if self._thread is None and self._waiting:
                self._start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Wait until every hint is sent or dropped; False if that takes longer than `seconds`."""
        with self._changed:
            return self._changed.wait_for(self._idle, seconds)

    def close(self) -> None:
        """Wait briefly for queued hints to be sent, then stop the thread."""
        if self._pid != os.getpid():
            return
        atexit.unregister(self.close)
        with self._changed:
            self._changed.wait_for(self._idle, self._last)
            self._closing = True
            self._changed.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(self._last)
        self._closing = False

    def _idle(self) -> bool:
        return not self._waiting and not self._sending

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="retoma-hints", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no thread available: the next `put` tries again
            self._warn(error)
            return
        self._thread = thread
        atexit.register(self.close)

    def _run(self) -> None:
        while group := self._next():
            try:
                self._send(group)
            except BaseException as error:  # noqa: BLE001 — after any error the next hints must be sent
                self._rest(len(group), error)
            else:
                self._sent()

    def _next(self) -> list[Hint]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            size = min(GROUP_SIZE, len(self._waiting))
            self._sending = size > 0
            return [self._waiting.popleft() for _ in range(size)]

    def _sent(self) -> None:
        with self._changed:
            self._sending = False
            if self._failing:
                self._failing = False
                log.info("hints.sent_again", dropped=self.dropped)
            self._changed.notify_all()

    def _rest(self, lost: int, error: BaseException) -> None:
        """Drop the queued hints and pause. Log one warning until sending works again."""
        with self._changed:
            self._sending = False
            self.dropped += lost + len(self._waiting)
            self._waiting.clear()
            self._warn(error)
            self._resting = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closing, self._pause)
            self._resting = False

    def _warn(self, error: BaseException) -> None:
        if not self._failing:
            log.warning("hints.not_sent", error=f"{type(error).__name__}: {error}")
        self._failing = True
