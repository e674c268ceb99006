"""The scrapes of a worker: their jobs by scrape id, the running one, and the status of each."""

import asyncio
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final

from retoma.codec import decode
from retoma.engine.rules.errors import IdempotencyMismatch, NotFound, Unsure
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.programs.worker.logbook import Logbook, RecordEvent
from retoma.programs.worker.model import (
    ENDS,
    STATUS_OF,
    ScrapeRequest,
    ScrapeResult,
    ScrapeStatus,
)
from retoma.words import say

KIND: Final = "scrape"
NEVER: Final = "never"  # the end of a scrape that was logged but not submitted
ACTOR: Final = "worker"
LOOK: Final = 0.25  # seconds between two checks for ended scrapes
PATIENCE: Final = 20.0  # seconds for a cancelled scrape to end
DIGITS: Final = 8  # of a scrape id, after `scrape_`
PAGE: Final = 200  # jobs read at a time when the worker starts


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A scrape as the API reports it."""

    job_id: str
    status: ScrapeStatus
    ads_count: int
    progress_pct: float | None = None
    error: str | None = None
    error_code: str | None = None
    url: str | None = None


class Scrapes:
    """The worker's jobs by their public scrape ids."""

    def __init__(self, retoma: Retoma, log: Logbook, record: RecordEvent) -> None:
        self._retoma = retoma
        self._log = log
        self._record = record
        self._jobs: dict[str, int] = {}
        self._keys: dict[str, str] = {}
        self._live: str | None = None  # the scrape whose end is not logged yet
        self._ending = asyncio.Lock()

    async def wake(self) -> None:
        """Load every stored scrape. A scrape that was logged but never submitted is recorded as ended."""
        before = None
        while page := await self._retoma.jobs(kind=KIND, before=before, limit=PAGE):
            for job in page:
                self._know(request_of(job), job.id)
            before = page[-1].id
        for job_id in self._log.unended("scrape", "job_id"):
            if job_id in self._jobs:
                self._live = job_id
            else:
                await self._record("scrape.ended", job_id=job_id, status=NEVER, ads_count=0)

    def new_id(self) -> str:
        while (made := f"scrape_{self._retoma.ids.new()[:DIGITS]}") in self._jobs:
            pass
        return made

    async def under_key(self, key: str) -> str | None:
        """Return the scrape that was begun under the key, if it is still stored."""
        job_id = self._keys.get(key)
        if job_id is not None:
            with suppress(NotFound):
                await self.job(job_id)
                return job_id
        return None

    async def begin(self, request: ScrapeRequest) -> None:
        """Begin a scrape. Logged first, so that the log knows every scrape."""
        await self._record(
            "scrape.began",
            job_id=request.id,
            session=request.session,
            proxy=request.proxy,
            key=request.key,
            filters=asdict(request.filters),
        )
        try:
            job = await self._retoma.submit(KIND, request, key=request.id)
        except Exception:
            await self._record("scrape.ended", job_id=request.id, status=NEVER, ads_count=0)
            raise
        self._know(request, job.id)
        self._live = request.id

    async def check_same(self, job_id: str, digest: str) -> None:
        if request_of(await self.job(job_id)).digest != digest:
            raise IdempotencyMismatch(
                say("the key was used for scrape {job} with other parameters", job=job_id)
            )

    async def under_way(self) -> str | None:
        """Return the running scrape, if any. Logs its end if it has ended."""
        if self._live is not None:
            await self.check(self._live)
        return self._live

    async def check(self, job_id: str) -> Seen:
        """Return the status of a scrape. Its end is logged before it is returned."""
        seen = await self.seen(job_id)
        if seen.status in ENDS:
            async with self._ending:
                if self._live == job_id:
                    await self._record(
                        "scrape.ended",
                        job_id=job_id,
                        status=seen.status,
                        ads_count=seen.ads_count,
                        error=seen.error,
                    )
                    self._live = None
        return seen

    async def cancel(self, job_id: str) -> None:
        """Cancel a scrape; it ends soon after."""
        job = await self.job(job_id)
        if not job.ended:
            await self._retoma.cancel(job.id, actor=ACTOR)

    async def end_live(self) -> None:
        """Cancel the running scrape and wait until it has ended."""
        live = await self.under_way()
        if live is None:
            return
        await self.cancel(live)
        for _ in range(int(PATIENCE / LOOK)):
            if await self.under_way() is None:
                return
            await self._retoma.clock.sleep(LOOK)
        raise Unsure(say("scrape {job} does not end; try again", job=live))

    async def job(self, job_id: str) -> Job:
        number = self._jobs.get(job_id)
        if number is None:
            raise NotFound(say("there is no scrape {job!r}", job=job_id[:100]))
        return await self._retoma.get(number)

    async def seen(self, job_id: str) -> Seen:
        job = await self.job(job_id)
        if job.state is State.DONE:
            result: ScrapeResult = decode(job.result or "null", ScrapeResult)
            return Seen(
                job_id=job_id,
                status=ScrapeStatus.COMPLETED if result.ads_count else ScrapeStatus.EMPTY,
                ads_count=result.ads_count,
                progress_pct=100.0,
                url=result.url,
            )
        waiting = ScrapeStatus.QUEUED if job.epoch else ScrapeStatus.PENDING
        dead = job.state is State.DEAD
        cause = (await self._retoma.dead.causes([job.id])).get(job.id) if dead else None
        return Seen(
            job_id=job_id,
            status=STATUS_OF.get(job.state, waiting),
            ads_count=int((job.note or "0").split()[0]),
            progress_pct=None if job.progress is None else round(100 * job.progress, 1),
            error=None if cause is None else cause.message,
            error_code=None if cause is None else cause.code,
        )

    def _know(self, request: ScrapeRequest, number: int) -> None:
        self._jobs[request.id] = number
        if request.key is not None:
            self._keys[request.key] = request.id


def request_of(job: Job) -> ScrapeRequest:
    request: ScrapeRequest = decode(job.payload, ScrapeRequest)
    return request
