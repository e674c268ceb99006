"""The one session of a worker: kept in a file, so that a killed worker knows what it had promised.

The credentials of its proxy lie sealed in the worker's database, never in the file. A worker that
comes back brings a session that was alive up again, through the same proxy; one that was over
stays over.
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
from retoma.programs.worker.logbook import Tell
from retoma.programs.worker.model import OVER, Filters, SessionState
from retoma.programs.worker.way import Way, fate_of
from retoma.secret import Secret, redact_text

FILE: Final = "session.json"
TRIES: Final = 3  # of each step of a beginning, and of each page
PAUSE: Final = 0.3  # seconds in between
PATIENCE: Final = 10.0  # seconds, however long a site would have us wait
log = get_logger("retoma.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A session as it is written down."""

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
        told = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Record(**{**told, "state": SessionState(told["state"])})


def write(folder: Path, record: Record) -> None:
    half = folder / f"{FILE}.half"
    with half.open("w", encoding="utf-8") as out:
        json.dump(asdict(record), out)
        out.flush()
        os.fsync(out.fileno())
    half.replace(folder / FILE)


class Session:
    """Alive in this process."""

    def __init__(
        self, folder: Path, record: Record, way: Way, tell: Tell, clock: Clock, watch: float
    ) -> None:
        """`watch`: seconds between two looks whether it is still there."""
        self.record = record
        self._folder = folder
        self._way = way
        self._tell = tell
        self._clock = clock
        self._watch = watch
        self._busy = 0
        self._told_over = False
        self._changing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self, first: Filters) -> None:
        """Bring it up, then watch it."""
        self._task = asyncio.create_task(self._live(first))

    async def stop(self) -> None:
        """Send nothing more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._way.close()

    async def become(self, state: SessionState, error: str | None = None) -> None:
        """The only way its state changes: written down, told, then true. What is over can only
        be terminated."""
        async with self._changing:
            was = self.record
            if was.state is SessionState.TERMINATED or (
                was.over and state is not SessionState.TERMINATED
            ):
                return
            if state in OVER:
                await self._way.close()
            said = None if error is None else redact_text(error)
            record = replace(was, state=state, error=said)
            write(self._folder, record)
            ends = record.over and not self._told_over
            await self._tell(
                "session.ended" if ends else "session.state",
                session=record.id,
                proxy=record.server,
                state=state,
                error=said,
            )
            self.record = record
            self._told_over = record.over

    async def page(self, filters: Filters, at: str | None) -> Any:
        """A page of the site; a failure that ends the session ends it here."""
        self._busy += 1
        try:
            return await self._tried(lambda: self._way.page(filters, at), patient=False)
        finally:
            self._busy -= 1

    # — its life —

    async def _live(self, first: Filters) -> None:
        try:
            up = await self._came_up(first)
            while up and not self.record.over:
                await self._clock.sleep(self._watch)
                if not self._busy:  # else what is under way tells it
                    await self._survived(self._way.look)
        except (DatabaseError, OSError) as error:
            log.exception("worker.session_failed", session=self.record.id)
            # Nothing could be written down; who asks is told all the same.
            self.record = replace(
                self.record, state=SessionState.DISCONNECTED, error=str(error)
            )
            await self._way.close()

    async def _came_up(self, first: Filters) -> bool:
        steps: tuple[tuple[SessionState, Callable[[], Awaitable[Any]]], ...] = (
            (SessionState.CONNECTING, self._way.dial),
            (SessionState.AUTHENTICATING, self._way.prove),
            (SessionState.WARMING_UP, lambda: self._way.page(first, None)),
        )
        for state, step in steps:
            await self.become(state)
            if not await self._survived(step):
                return False
        await self.become(SessionState.READY)
        return True

    async def _survived(self, step: Callable[[], Awaitable[Any]]) -> bool:
        try:
            await self._tried(step)
        except RetomaError as error:
            # It was tried often enough: a session that cannot even begin is none.
            await self.become(SessionState.DISCONNECTED, str(error))
        return not self.record.over

    async def _tried(self, step: Callable[[], Awaitable[Any]], *, patient: bool = True) -> Any:
        """Its answer, at the third try at the latest; else what it failed of. A failure after
        which nothing can be sent any more has ended the session. A wait that the site asks for
        is kept here, if we are `patient`; a scrape is better given back meanwhile."""
        for left in range(TRIES - 1, -1, -1):
            try:
                return await step()
            except (Transient, Permanent) as error:
                wait = _wait_before_next(error)
                throttled = isinstance(error, Throttled)
                if left and wait is not None and (patient or not throttled):
                    await self._clock.sleep(wait)
                    continue
                fate = fate_of(error)
                if fate is not None:
                    await self.become(fate, str(error))
                raise
        return None


def _wait_before_next(error: Transient | Permanent) -> float | None:
    """Seconds; None: another try is of no use."""
    if isinstance(error, Permanent) or error.code == "timeout":
        return None  # silence for as long as it may last is enough
    return min(error.retry_after or PAUSE, PATIENCE)


def sealed(user: str, password: str) -> Secret:
    """What a vault keeps of a proxy."""
    return Secret(json.dumps([user, password]))


def unsealed(secret: Secret | None) -> tuple[str, str]:
    if secret is None:
        return "", ""
    user, password = json.loads(secret.reveal())
    return user, password
