"""What a runner was told to look at and has not looked at yet, and what ends its wait."""

import asyncio

from retoma.engine.run.claim_cursor import QueueCursor


class Signals:
    """Of one runner instance; all of it on the event loop."""

    def __init__(self, cursor: QueueCursor) -> None:
        self._cursor = cursor
        self.wake = asyncio.Event()
        self.notified = False  # something may have changed since the last claim
        self.cancels = False  # a person wants jobs of ours canceled
        self.instance_started = False  # another one, on this machine or elsewhere
        self.free_slot_wakes = True  # a slot that gets free ends the wait

    def look(self, queue: str | None = None) -> None:
        """Something may have changed, in this queue or anywhere: do not wait for the tick."""
        if queue is None:
            self._cursor.wake_all()
        else:
            self._cursor.wake(queue)
        self.notify()

    def notify(self) -> None:
        self.notified = True
        self.wake.set()
