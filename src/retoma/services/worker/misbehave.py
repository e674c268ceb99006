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

from retoma.engine.errors import NotFound
from retoma.services.worker.model import Filters, ScrapeStatus, SessionState
from retoma.services.worker.results import results_file
from retoma.services.worker.worker import Seen, Worker
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
        session = self._session
        if trouble is not None and session is not None:
            await session.stop()
            await session.become(SessionState.CONNECTING)
            match trouble:
                case BadSession.NEVER_READY:
                    await session.become(SessionState.WARMING_UP)
                case _:
                    await session.become(SessionState(trouble), "told to misbehave")
        return record

    # — scrapes —

    async def begin_scrape(self, filters: Filters, **how: Any) -> str:
        job_id = await super().begin_scrape(filters, **how)
        if job_id in self._told["marked"]:
            trouble = self._told["marked"][job_id]
        else:
            trouble = self._next("scrape")
            self._told["marked"][job_id] = trouble
            self._keep()
        return HOSTILE if trouble == BadScrape.HOSTILE_ID else job_id

    async def scrape(self, job_id: str) -> Seen:
        trouble = self._told["marked"].get(job_id)
        if trouble == BadScrape.VANISHES:
            raise NotFound(say("there is no scrape {job!r}", job=job_id))
        seen = await super().scrape(job_id)
        return await self._bent(seen, trouble)

    async def _seen(self, job_id: str) -> Seen:
        """What the worker itself believes: a scrape that never ends keeps it busy."""
        seen = await super()._seen(job_id)
        trouble = self._told["marked"].get(job_id)
        if trouble in (BadScrape.NEVER_ENDS, BadScrape.PAUSED) and (
            seen.status is not ScrapeStatus.CANCELLED
        ):
            status = (
                ScrapeStatus.RUNNING if trouble == BadScrape.NEVER_ENDS else ScrapeStatus.PAUSED
            )
            return Seen(job_id=job_id, status=status, ads_count=0)
        if trouble == BadScrape.FAILS and seen.status is ScrapeStatus.COMPLETED:
            return Seen(
                job_id=job_id,
                status=ScrapeStatus.FAILED,
                ads_count=0,
                error="told to misbehave",
                error_code="misbehaves",
            )
        return seen

    async def cancel_scrape(self, job_id: str) -> Seen:
        if self._told["marked"].get(job_id) in (BadScrape.NEVER_ENDS, BadScrape.PAUSED):
            self._told["marked"][job_id] = None
            self._keep()
        return await super().cancel_scrape(job_id)

    async def _bent(self, seen: Seen, trouble: str | None) -> Seen:
        bend = BENT.get(trouble or "")
        if seen.status is ScrapeStatus.COMPLETED and bend is not None:
            file = results_file(self.config.folder, seen.job_id)
            await asyncio.get_running_loop().run_in_executor(None, bend, file)
            self._told["marked"][seen.job_id] = None
            self._keep()
        return seen

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
