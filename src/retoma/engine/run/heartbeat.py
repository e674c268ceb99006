"""The heartbeat of a runner instance, and the wake-ups that it hears between two heartbeats.

`Heartbeat` writes and decides, and waits for nothing: a test or a simulation drives it by hand.
`HeartbeatThread` repeats it in a thread with a connection of its own, because slow Python in a
handler must not cost the lease.
"""

import threading
from collections.abc import Callable
from contextlib import suppress

from retoma.db import EVERYTHING, Database, DatabaseError
from retoma.engine import store
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.store import Beat

LEASE = 60.0  # seconds: six heartbeats (seed 002)
BEAT = 10.0
WAKE_AGAIN = (
    0.05  # seconds: another thread on the same database may have taken the first wake-up
)
BEAT_AGAIN = 1.0  # after a heartbeat that got no answer
LISTEN_AGAIN = 1.0  # seconds until a runner that cannot listen tries to listen again
BEATS = 3  # in a lease at the least: one that comes late must not lose everything
TROUBLE = 200  # characters of what keeps a runner from its work
MARGIN = LEASE / 6  # a runner stops starting things so long before its lease can end: one beat

log = get_logger("retoma.heartbeat")


class Heartbeat:
    """Keeps one runner instance alive, one `run_once` at a time."""

    def __init__(
        self,
        database: Database,
        instance: str,
        clock: Clock,
        *,
        lease: float,
        beat: float,
        on_wake_up: Callable[[set[str]], None],
        on_lost: Callable[[], None],
        on_drain: Callable[[], None] = lambda: None,
    ) -> None:
        # Both from before the instance is written: its lease is no younger than that.
        self.valid_until = clock.now() + lease - lease * (MARGIN / LEASE)
        self._next = clock.now() + beat
        self._database = database
        self._instance = instance
        self._clock = clock
        self._lease = lease
        self._beat = beat
        self._on_wake_up = on_wake_up
        self._on_lost = on_lost
        self._on_drain = on_drain
        self._unanswered = False  # since the last heartbeat that was answered
        self._trouble: str | None = None
        self._reported: str | None = None
        self._drained = False

    def report(self, trouble: str | None) -> None:
        """Write with the next `run_once` what keeps this runner from its work, or that nothing does."""
        self._trouble = None if trouble is None else trouble[:TROUBLE]

    def valid(self) -> bool:
        """Whether this instance may still start something."""
        return self.valid_left() > 0

    def valid_left(self) -> float:
        """Seconds in which this instance may still start something."""
        return self.valid_until - self._clock.now()

    def seconds_left(self) -> float:
        """Seconds until the next heartbeat."""
        return self._next - self._clock.now()

    def run_once(self, topics: set[str]) -> bool:
        """Pass wake-ups on, and send a heartbeat if one is due. False: this instance is over."""
        if topics:
            self._on_wake_up(topics)
        asked = self._clock.now()
        due = asked >= self._next or self._trouble != self._reported
        if not (due or self._drain_requested(topics)):
            return True
        if not self.beat():
            self._on_lost()
            return False
        # From the asking, as the lease: a slow answer must not thin out the heartbeats.
        self._next = asked + (BEAT_AGAIN if self._unanswered else self._beat)
        return True

    def beat(self) -> bool:
        """Send one heartbeat; False where this instance is over. No answer at all is not an answer."""
        asked = self._clock.now()
        trouble = self._trouble
        try:
            alive = self._database.write_now(
                lambda tx: store.beat_runner(
                    tx,
                    self._instance,
                    self._lease,
                    reconnected=self._unanswered,
                    trouble=trouble,
                ),
                verb="beat",
            )
        except DatabaseError as error:
            log.warning("runner.beat_failed", runner=self._instance, error=str(error))
            self._unanswered = True
            return True
        except Exception:
            log.exception("runner.beat_failed", runner=self._instance)
            self._unanswered = True
            return True
        if alive:
            self._unanswered = False
            self._reported = trouble
            self.valid_until = asked + self._lease - self._lease * (MARGIN / LEASE)
        if alive is Beat.LEAVE and not self._drained:
            self._drained = True
            self._on_drain()
        return bool(alive)

    def _drain_requested(self, topics: set[str]) -> bool:
        """Also ask when we have only begun to listen: the request may have come before."""
        if f"{store.DRAIN}{self._instance}" in topics:
            return True
        with suppress(DatabaseError):
            return EVERYTHING in topics and self._database.write_now(
                lambda tx: store.drain_wanted(tx, self._instance), verb="drain_wanted"
            )
        return False


class HeartbeatThread:
    """Repeats a heartbeat in a thread of its own until it is stopped or the instance is over.

    Whatever ends the thread otherwise is passed to `on_death`, from that thread: a runner whose
    heartbeat has stopped must know, or it holds jobs that it may no longer finish.
    """

    def __init__(
        self,
        heartbeat: Heartbeat,
        database: Database,
        *,
        on_death: Callable[[BaseException], None],
    ) -> None:
        self._heartbeat = heartbeat
        self._database = database
        self._on_death = on_death
        self._stopping = threading.Event()
        self._listens = True
        self._thread = threading.Thread(target=self._run, name="retoma-heartbeat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Return when the thread has ended; a thread that was never started has."""
        self._stopping.set()
        while self._thread.is_alive():
            self.wake()
            self._thread.join(WAKE_AGAIN)

    def wake(self) -> None:
        """Run the heartbeat once, now."""
        with suppress(OSError):  # nothing can be opened just now: it runs when it is due
            self._database.wake()

    def _run(self) -> None:
        try:
            while True:
                topics = self._wait()
                if self._stopping.is_set() or not self._heartbeat.run_once(topics):
                    return
        except BaseException as error:  # noqa: BLE001 — whatever it was, somebody must know
            self._on_death(error)

    def _wait(self) -> set[str]:
        """Wake-ups until the next heartbeat. Without them the tick finds the work: no reason to die."""
        seconds = self._heartbeat.seconds_left()
        try:
            topics = self._database.wait_bell(seconds)
        except (OSError, DatabaseError) as error:
            if self._listens:
                log.exception("runner.cannot_listen", error=str(error))
            self._listens = False
            self._stopping.wait(min(max(seconds, 0.0), LISTEN_AGAIN))
            return set()
        if not self._listens:
            log.info("runner.listens_again")
        self._listens = True
        return topics
