"""Hands hints over from a thread of its own: nobody who submits waits for a broker, or fails by it."""

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from retoma.engine.log import get_logger
from retoma.engine.store.hints import Hint

WAITING = 10_000  # hints that wait to be sent; what is more is found when it is hinted again
TOGETHER = 500  # sent before anybody looks whether to stop
REST = 5.0  # seconds in which nothing is tried after the broker did not answer
LAST = 2.0  # seconds for what is on its way when we close

log = get_logger("retoma.dispatch")


class Sender:
    """What is put in is sent soon, or dropped: the database knows it anyway."""

    def __init__(
        self, send: Callable[[Sequence[Hint]], None], *, rest: float = REST, last: float = LAST
    ) -> None:
        self._send = send
        self._pause = rest
        self._last = last
        self._begin()

    def _begin(self) -> None:
        """Anew in each process: a forked one inherits neither the thread nor a lock it may hold."""
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
            room = 0 if self._resting else WAITING - len(self._waiting)
            self._waiting.extend(islice(hints, room))
            self.dropped += max(len(hints) - room, 0)
            if self._thread is None and self._waiting:
                self._start()
            self._changed.notify_all()

    def flush(self, seconds: float) -> bool:
        """Whether all that was put in is sent, or given up, within that time."""
        with self._changed:
            return self._changed.wait_for(self._idle, seconds)

    def close(self) -> None:
        """What waits has a moment to get out; a broker that does not answer keeps nobody here."""
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
        except (
            RuntimeError
        ) as error:  # the system has none left: what is put in next may find one
            self._warn(error)
            return
        self._thread = thread
        atexit.register(self.close)

    def _run(self) -> None:
        while group := self._next():
            try:
                self._send(group)
            except BaseException as error:  # noqa: BLE001 — whatever it was, the next hints must go out
                self._rest(len(group), error)
            else:
                self._sent()

    def _next(self) -> list[Hint]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            size = min(TOGETHER, len(self._waiting))
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
        """Drop what waits, and try nothing for a while: one warning until it works again."""
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
