"""A worker with faults on demand, for tests and the demo only.

It wraps the real worker and changes what its API reports. The injected faults are stored in a file, so that
they survive a killed worker.
"""

import asyncio
import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from retoma.engine.rules.errors import NotFound
from retoma.programs.worker.model import Filters, ScrapeStatus, SessionState
from retoma.programs.worker.results import results_file
from retoma.programs.worker.scrapes import Scrapes, Seen
from retoma.programs.worker.session import Session
from retoma.programs.worker.worker import Worker
from retoma.words import say

FILE: Final = "misbehave.json"
HOSTILE: Final = "../../etc/passwd?@example.org"


class BadSession(StrEnum):
    """Faults of the next sessions."""

    STUCK = "stuck"
    DISCONNECTED = "disconnected"
    NEVER_READY = "never_ready"


class BadScrape(StrEnum):
    """Faults of the next scrapes."""

    NEVER_ENDS = "never_ends"
    VANISHES = "vanishes"
    FAILS = "fails"
    PAUSED = "paused"
    TRUNCATED = "truncated"
    DUPLICATE_IDS = "duplicate_ids"
    BAD_ROWS = "bad_rows"
    HOSTILE_ID = "hostile_id"


ENDLESS: Final = {
    BadScrape.NEVER_ENDS: ScrapeStatus.RUNNING,
    BadScrape.PAUSED: ScrapeStatus.PAUSED,
}


class BadWorker(Worker):
    """A worker with the injected faults."""

    def __init__(self, *options: Any) -> None:
        super().__init__(*options)
        self._file = self.config.folder / FILE
        self._armed: dict[str, Any] = {"session": [], "scrape": [], "marked": {}}
        if self._file.exists():
            self._armed = json.loads(self._file.read_text(encoding="utf-8"))

    def arm(self, session: BadSession | None, scrape: BadScrape | None, times: int) -> None:
        """Inject a fault into the next `times` sessions or scrapes."""
        if session is not None:
            self._armed["session"] += [session] * times
        if scrape is not None:
            self._armed["scrape"] += [scrape] * times
        self._keep()

    def disarm(self) -> None:
        self._armed = {"session": [], "scrape": [], "marked": {}}
        self._keep()

    async def begin_session(self, *args: Any, **options: Any) -> Any:
        record = await super().begin_session(*args, **options)
        fault = self._next("session")
        if fault is not None and self._session is not None:
            await self._session.stop()
            await self._session.become(SessionState.CONNECTING)
            await self._spoil(self._session, fault)
        return record

    async def spoil_session(self, fault: BadSession) -> None:
        """Inject a fault into the open session."""
        if self._session is not None:
            await self._session.stop()
            await self._spoil(self._session, fault)

    async def _spoil(self, session: Session, fault: str) -> None:
        if fault == BadSession.NEVER_READY:
            await session.become(SessionState.WARMING_UP)
        else:
            await session.become(SessionState(fault), "told to misbehave")

    def make_scrapes(self) -> Scrapes:
        return BadScrapes(self.retoma, self.log, self.record_event, self.fault_of)

    def fault_of(self, job_id: str) -> str | None:
        fault: str | None = self._armed["marked"].get(job_id)
        return fault

    async def begin_scrape(self, filters: Filters, **options: Any) -> str:
        job_id = await super().begin_scrape(filters, **options)
        if job_id not in self._armed["marked"]:
            self._mark(job_id, self._next("scrape"))
        return HOSTILE if self.fault_of(job_id) == BadScrape.HOSTILE_ID else job_id

    async def scrape(self, job_id: str) -> Seen:
        fault = self.fault_of(job_id)
        if fault == BadScrape.VANISHES:
            raise NotFound(say("there is no scrape {job!r}", job=job_id))
        seen = await super().scrape(job_id)
        corrupt = CORRUPTIONS.get(fault or "")
        if seen.status is ScrapeStatus.COMPLETED and corrupt is not None:
            file = results_file(self.config.folder, job_id)
            await asyncio.get_running_loop().run_in_executor(None, corrupt, file)
            self._mark(job_id, None)
        return seen

    async def cancel_scrape(self, job_id: str) -> Seen:
        if self.fault_of(job_id) in ENDLESS:
            self._mark(job_id, None)
        return await super().cancel_scrape(job_id)

    async def _end_session(self) -> None:
        for job_id, fault in self._armed["marked"].items():
            if fault in ENDLESS:
                self._mark(job_id, None)
        await super()._end_session()

    def _mark(self, job_id: str, fault: str | None) -> None:
        self._armed["marked"][job_id] = fault
        self._keep()

    def _next(self, what: str) -> str | None:
        waiting: list[str] = self._armed[what]
        taken = waiting.pop(0) if waiting else None
        self._keep()
        return taken

    def _keep(self) -> None:
        half = self._file.with_suffix(".half")
        half.write_text(json.dumps(self._armed), encoding="utf-8")
        half.replace(self._file)


class BadScrapes(Scrapes):
    """Applies the faults where the worker itself reads the status, so that an endless scrape keeps it busy."""

    def __init__(self, *options: Any) -> None:
        *honest, self._fault_of = options
        super().__init__(*honest)

    async def seen(self, job_id: str) -> Seen:
        seen = await super().seen(job_id)
        fault = self._fault_of(job_id)
        if fault in ENDLESS and seen.status is not ScrapeStatus.CANCELLED:
            return Seen(job_id=job_id, status=ENDLESS[fault], ads_count=0)
        if fault == BadScrape.FAILS and seen.status is ScrapeStatus.COMPLETED:
            return Seen(
                job_id=job_id,
                status=ScrapeStatus.FAILED,
                ads_count=0,
                error="told to misbehave",
                error_code="misbehaves",
            )
        return seen


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _double(file: Path) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    document["ads"] += document["ads"][:3]
    file.write_text(json.dumps(document), encoding="utf-8")


def _spoil(file: Path) -> None:
    document = json.loads(file.read_text(encoding="utf-8"))
    for index, bad in enumerate(({"id": None}, {"qtd_ads": "many"}, {"date": "31/02/2025"})):
        if index < len(document["ads"]):
            document["ads"][index] |= bad
    file.write_text(json.dumps(document), encoding="utf-8")


CORRUPTIONS: Final[dict[str, Callable[[Path], None]]] = {
    BadScrape.TRUNCATED: _truncate,
    BadScrape.DUPLICATE_IDS: _double,
    BadScrape.BAD_ROWS: _spoil,
}
