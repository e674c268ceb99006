"""A worker that misbehaves when told to: for tests and the demo, and nowhere else.

All of it is here. It wraps the honest worker and changes what others see of it; what it was told
lies in a file, so that a killed worker misbehaves on.
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
    """What becomes of the next sessions."""

    STUCK = "stuck"
    DISCONNECTED = "disconnected"
    NEVER_READY = "never_ready"


class BadScrape(StrEnum):
    """What becomes of the next scrapes."""

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
    """An honest worker, but for what it was told."""

    def __init__(self, *how: Any) -> None:
        super().__init__(*how)
        self._file = self.config.folder / FILE
        self._told: dict[str, Any] = {"session": [], "scrape": [], "marked": {}}
        if self._file.exists():
            self._told = json.loads(self._file.read_text(encoding="utf-8"))

    def arm(self, session: BadSession | None, scrape: BadScrape | None, times: int) -> None:
        """The next so many sessions, or scrapes, fare so."""
        if session is not None:
            self._told["session"] += [session] * times
        if scrape is not None:
            self._told["scrape"] += [scrape] * times
        self._keep()

    def disarm(self) -> None:
        self._told = {"session": [], "scrape": [], "marked": {}}
        self._keep()

    # — sessions —

    async def begin_session(self, *asked: Any, **how: Any) -> Any:
        record = await super().begin_session(*asked, **how)
        trouble = self._next("session")
        if trouble is not None and self._session is not None:
            await self._session.stop()
            await self._session.become(SessionState.CONNECTING)
            await self._spoil(self._session, trouble)
        return record

    async def spoil_session(self, trouble: BadSession) -> None:
        """The one there is, now: also while it is ready, or scraping."""
        if self._session is not None:
            await self._session.stop()
            await self._spoil(self._session, trouble)

    async def _spoil(self, session: Session, trouble: str) -> None:
        if trouble == BadSession.NEVER_READY:
            await session.become(SessionState.WARMING_UP)
        else:
            await session.become(SessionState(trouble), "told to misbehave")

    # — scrapes —

    def make_scrapes(self) -> Scrapes:
        return BadScrapes(self.retoma, self.log, self.tell, self.trouble_of)

    def trouble_of(self, job_id: str) -> str | None:
        trouble: str | None = self._told["marked"].get(job_id)
        return trouble

    async def begin_scrape(self, filters: Filters, **how: Any) -> str:
        job_id = await super().begin_scrape(filters, **how)
        if job_id not in self._told["marked"]:
            self._mark(job_id, self._next("scrape"))
        return HOSTILE if self.trouble_of(job_id) == BadScrape.HOSTILE_ID else job_id

    async def scrape(self, job_id: str) -> Seen:
        trouble = self.trouble_of(job_id)
        if trouble == BadScrape.VANISHES:
            raise NotFound(say("there is no scrape {job!r}", job=job_id))
        seen = await super().scrape(job_id)
        bend = BENT.get(trouble or "")
        if seen.status is ScrapeStatus.COMPLETED and bend is not None:
            file = results_file(self.config.folder, job_id)
            await asyncio.get_running_loop().run_in_executor(None, bend, file)
            self._mark(job_id, None)
        return seen

    async def cancel_scrape(self, job_id: str) -> Seen:
        if self.trouble_of(job_id) in ENDLESS:
            self._mark(job_id, None)
        return await super().cancel_scrape(job_id)

    async def _end_session(self) -> None:
        for job_id, trouble in self._told["marked"].items():
            if trouble in ENDLESS:
                self._mark(job_id, None)
        await super()._end_session()

    def _mark(self, job_id: str, trouble: str | None) -> None:
        self._told["marked"][job_id] = trouble
        self._keep()

    # — what it was told —

    def _next(self, what: str) -> str | None:
        waiting: list[str] = self._told[what]
        taken = waiting.pop(0) if waiting else None
        self._keep()
        return taken

    def _keep(self) -> None:
        half = self._file.with_suffix(".half")
        half.write_text(json.dumps(self._told), encoding="utf-8")
        half.replace(self._file)


class BadScrapes(Scrapes):
    """What the worker itself believes: a scrape that never ends keeps it busy."""

    def __init__(self, *how: Any) -> None:
        *honest, self._trouble_of = how
        super().__init__(*honest)

    async def seen(self, job_id: str) -> Seen:
        seen = await super().seen(job_id)
        trouble = self._trouble_of(job_id)
        if trouble in ENDLESS and seen.status is not ScrapeStatus.CANCELLED:
            return Seen(job_id=job_id, status=ENDLESS[trouble], ads_count=0)
        if trouble == BadScrape.FAILS and seen.status is ScrapeStatus.COMPLETED:
            return Seen(
                job_id=job_id,
                status=ScrapeStatus.FAILED,
                ads_count=0,
                error="told to misbehave",
                error_code="misbehaves",
            )
        return seen


# — results that are not as they should be —


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def _double(file: Path) -> None:
    told = json.loads(file.read_text(encoding="utf-8"))
    told["ads"] += told["ads"][:3]
    file.write_text(json.dumps(told), encoding="utf-8")


def _spoil(file: Path) -> None:
    told = json.loads(file.read_text(encoding="utf-8"))
    for place, spoilt in enumerate(({"id": None}, {"qtd_ads": "many"}, {"date": "31/02/2025"})):
        if place < len(told["ads"]):
            told["ads"][place] |= spoilt
    file.write_text(json.dumps(told), encoding="utf-8")


BENT: Final[dict[str, Callable[[Path], None]]] = {
    BadScrape.TRUNCATED: _truncate,
    BadScrape.DUPLICATE_IDS: _double,
    BadScrape.BAD_ROWS: _spoil,
}
