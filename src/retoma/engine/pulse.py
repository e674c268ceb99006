"""The heartbeat and the ear of a runner, in a thread of its own with its own connection.

Slow Python in a story does not lose the lease: the beat does not run on the event loop. A beat that
is refused means this boot is over. Between beats the thread listens for the bell.
"""

import threading
from collections.abc import Callable
from contextlib import suppress

from retoma.db import EVERYTHING, Database, DatabaseError
from retoma.engine import store
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.store import Beat

LEASE = 60.0  # seconds: six beats (seed 002)
BEAT = 10.0
WAKE_AGAIN = 0.05  # seconds: another pulse on the same database may have taken the first
BEAT_AGAIN = 1.0  # after a beat that got no answer
BEATS = 3  # in a lease at the least: one that comes late must not lose everything
TROUBLE = 200  # characters of what keeps a runner from its work
MARGIN = LEASE / 6  # a runner stops starting things so long before its lease can end: one beat

log = get_logger("retoma.pulse")


class Pulse:
    """Keeps one boot alive and hears what rings meanwhile."""

    def __init__(
        self,
        database: Database,
        boot: str,
        clock: Clock,
        *,
        lease: float,
        beat: float,
        on_bell: Callable[[set[str]], None],
        on_lost: Callable[[], None],
        on_drain: Callable[[], None] = lambda: None,
    ) -> None:
        # Both from before the boot is written: its lease is no younger than that.
        self.valid_until = clock.now() + lease - lease * (MARGIN / LEASE)
        self._first_beat = clock.now() + beat
        self._database = database
        self._boot = boot
        self._clock = clock
        self._lease = lease
        self._beat = beat
        self._on_bell = on_bell
        self._on_lost = on_lost
        self._on_drain = on_drain
        self._stopping = threading.Event()
        self._deaf_since_last_beat = False
        self._trouble: str | None = None
        self._told: str | None = None
        self._drained = False
        self._thread = threading.Thread(target=self._run, name="retoma-pulse", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        while self._thread.is_alive():
            self._database.wake()
            self._thread.join(WAKE_AGAIN)

    def tell(self, trouble: str | None) -> None:
        """What keeps this runner from its work, for whoever looks at it; with a beat at once."""
        self._trouble = None if trouble is None else trouble[:TROUBLE]
        self._database.wake()

    def valid(self) -> bool:
        """Whether something may still be started under this boot."""
        return self._clock.now() < self.valid_until

    def _run(self) -> None:
        next_beat = self._first_beat
        while not self._stopping.is_set():
            topics = self._database.wait_bell(next_beat - self._clock.now())
            if self._stopping.is_set():
                return
            if topics:
                self._on_bell(topics)
            asked = self._clock.now()
            if asked >= next_beat or self._trouble != self._told or self._wanted_gone(topics):
                if not self.beat():
                    self._on_lost()
                    return
                # From the asking, as the lease: a slow answer must not thin out the beats.
                next_beat = asked + (BEAT_AGAIN if self._deaf_since_last_beat else self._beat)

    def _wanted_gone(self, topics: set[str]) -> bool:
        """Who has only begun to listen may have been told before."""
        if f"{store.DRAIN}{self._boot}" in topics:
            return True
        with suppress(DatabaseError):
            return EVERYTHING in topics and self._database.write_now(
                lambda tx: store.drain_wanted(tx, self._boot), verb="drain_wanted"
            )
        return False

    def beat(self) -> bool:
        """One beat; False where this boot is over. No answer at all is not an answer."""
        asked = self._clock.now()
        trouble = self._trouble
        try:
            alive = self._database.write_now(
                lambda tx: store.beat_runner(
                    tx,
                    self._boot,
                    self._lease,
                    reconnected=self._deaf_since_last_beat,
                    trouble=trouble,
                ),
                verb="beat",
            )
        except DatabaseError as error:
            log.warning("runner.beat_failed", runner=self._boot, error=str(error))
            self._deaf_since_last_beat = True
            return True
        except Exception:
            log.exception("runner.beat_failed", runner=self._boot)
            self._deaf_since_last_beat = True
            return True
        if alive:
            self._deaf_since_last_beat = False
            self._told = trouble
            self.valid_until = asked + self._lease - self._lease * (MARGIN / LEASE)
        if alive is Beat.LEAVE and not self._drained:
            self._drained = True
            self._on_drain()
        return bool(alive)
