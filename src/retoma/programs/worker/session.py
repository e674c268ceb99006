"""The session of a worker, stored in a file so that it survives a killed worker.

The proxy's credentials are encrypted in the worker's database, never in the file. A restarted worker
resumes an open session through the same proxy; a session that was over stays over.
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from retoma.db import DatabaseError
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import Permanent, RetomaError, Throttled, Transient
from retoma.programs.worker.logbook import RecordEvent
from retoma.programs.worker.model import OVER, Filters, SessionState
from retoma.programs.worker.way import Way, end_state_of
from retoma.secret import Secret, redact_text

FILE: Final = "session.json"
TRIES: Final = 3  # of each step of the start, and of each page
PAUSE: Final = 0.3  # seconds in between
PATIENCE: Final = 10.0  # seconds: the longest Retry-After that a session waits for
log = get_logger("retoma.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The stored state of a session."""

    id: str
    server: str  # host:port of its proxy
    tls: bool
    state: SessionState
    error: str | None = None

    @property
    def over(self) -> bool:
        return self.state in OVER


def read(folder: Path) -> Record | None:
    try:
        stored = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Record(**{**stored, "state": SessionState(stored["state"])})


def write(folder: Path, record: Record) -> None:
    half = folder / f"{FILE}.half"
    with half.open("w", encoding="utf-8") as out:
        json.dump(asdict(record), out)
        out.flush()
        os.fsync(out.fileno())
    half.replace(folder / FILE)


class Session:
    """A session that runs in this process."""

    def __init__(
        self,
        folder: Path,
        record: Record,
        way: Way,
        record_event: RecordEvent,
        clock: Clock,
        watch: float,
    ) -> None:
        """`watch`: seconds between two health checks."""
        self.record = record
        self._folder = folder
        self._way = way
        self._record_event = record_event
        self._clock = clock
        self._watch = watch
        self._busy = 0
        self._end_recorded = False
        self._changing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self, first: Filters) -> None:
        """Bring the session up, then check its health."""
        self._task = asyncio.create_task(self._live(first))

    async def stop(self) -> None:
        """Stop the session. When this returns it sends nothing more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._way.close()

    async def become(self, state: SessionState, error: str | None = None) -> None:
        """Change the state: store it, log it, then set it. A session that is over can only become
        TERMINATED."""
        async with self._changing:
            was = self.record
            if was.state is SessionState.TERMINATED or (
                was.over and state is not SessionState.TERMINATED
            ):
                return
            if state in OVER:
                await self._way.close()
            shown = None if error is None else redact_text(error)
            record = replace(was, state=state, error=shown)
            write(self._folder, record)
            ends = record.over and not self._end_recorded
            await self._record_event(
                "session.ended" if ends else "session.state",
                session=record.id,
                proxy=record.server,
                state=state,
                error=shown,
            )
            self.record = record
            self._end_recorded = record.over

    async def page(self, filters: Filters, at: str | None) -> Any:
        """Read a page of the site. A failure that ends the session changes its state."""
        self._busy += 1
        try:
            return await self._try(lambda: self._way.page(filters, at), patient=False)
        finally:
            self._busy -= 1

    async def _live(self, first: Filters) -> None:
        try:
            up = await self._bring_up(first)
            while up and not self.record.over:
                await self._clock.sleep(self._watch)
                if not self._busy:  # otherwise the page being read shows it
                    await self._is_alive_after(self._way.look)
        except (DatabaseError, OSError) as error:
            log.exception("worker.session_failed", session=self.record.id)
            # The state could not be stored; the API still reports it.
            self.record = replace(
                self.record, state=SessionState.DISCONNECTED, error=str(error)
            )
            await self._way.close()

    async def _bring_up(self, first: Filters) -> bool:
        steps: tuple[tuple[SessionState, Callable[[], Awaitable[Any]]], ...] = (
            (SessionState.CONNECTING, self._way.dial),
            (SessionState.AUTHENTICATING, self._way.prove),
            (SessionState.WARMING_UP, lambda: self._way.page(first, None)),
        )
        for state, step in steps:
            await self.become(state)
            if not await self._is_alive_after(step):
                return False
        await self.become(SessionState.READY)
        return True

    async def _is_alive_after(self, step: Callable[[], Awaitable[Any]]) -> bool:
        try:
            await self._try(step)
        except RetomaError as error:
            # All tries failed: the session cannot start.
            await self.become(SessionState.DISCONNECTED, str(error))
        return not self.record.over

    async def _try(self, step: Callable[[], Awaitable[Any]], *, patient: bool = True) -> Any:
        """Call `step` up to three times. A failure that makes the proxy or browser unusable ends the
        session. `patient`: wait as long as the site's Retry-After demands; a scrape is snoozed instead."""
        for left in range(TRIES - 1, -1, -1):
            try:
                return await step()
            except (Transient, Permanent) as error:
                wait = _wait_before_next(error)
                throttled = isinstance(error, Throttled)
                if left and wait is not None and (patient or not throttled):
                    await self._clock.sleep(wait)
                    continue
                end_state = end_state_of(error)
                if end_state is not None:
                    await self.become(end_state, str(error))
                raise
        return None


def _wait_before_next(error: Transient | Permanent) -> float | None:
    """Return the seconds before the next try; None if another try is useless."""
    if isinstance(error, Permanent) or error.code == "timeout":
        return None  # the whole timeout has passed already
    return min(error.retry_after or PAUSE, PATIENCE)


def format_credentials(user: str, password: str) -> Secret:
    """Return a proxy's credentials as one secret for the vault."""
    return Secret(json.dumps([user, password]))


def parse_credentials(secret: Secret | None) -> tuple[str, str]:
    if secret is None:
        return "", ""
    user, password = json.loads(secret.reveal())
    return user, password
