"""What a worker knows of its scrapes: which there were, which one is under way, how each stands."""

import asyncio
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Final

from retoma.codec import decode
from retoma.engine.rules.errors import IdempotencyMismatch, NotFound, Unsure
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.library import Retoma
from retoma.programs.worker.logbook import Logbook, Tell
from retoma.programs.worker.model import ENDS, STATUS_OF, Found, Order, ScrapeStatus
from retoma.words import say

KIND: Final = "scrape"
NEVER: Final = "never"  # how a scrape ended that was told of and then not begun
ACTOR: Final = "worker"
LOOK: Final = 0.25  # seconds between two looks whether a scrape has ended
PATIENCE: Final = 20.0  # seconds for a scrape that was cancelled to end
DIGITS: Final = 8  # of an id, after `scrape_`
PAGE: Final = 200  # jobs read at a time when the worker wakes


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A scrape, as whoever asks is told."""

    job_id: str
    status: ScrapeStatus
    ads_count: int
    progress_pct: float | None = None
    error: str | None = None
    error_code: str | None = None
    url: str | None = None


class Scrapes:
    """Jobs of the worker's own house, by the ids that others know them by."""

    def __init__(self, retoma: Retoma, log: Logbook, tell: Tell) -> None:
        self._retoma = retoma
        self._log = log
        self._tell = tell
        self._jobs: dict[str, int] = {}
        self._keys: dict[str, str] = {}
        self._live: str | None = None  # the one that has not been seen to end
        self._ending = asyncio.Lock()

    async def wake(self) -> None:
        """Every scrape that is kept; one that was only told of is over."""
        before = None
        while page := await self._retoma.jobs(kind=KIND, before=before, limit=PAGE):
            for job in page:
                self._know(order_of(job), job.id)
            before = page[-1].id
        for job_id in self._log.unended("scrape", "job_id"):
            if job_id in self._jobs:
                self._live = job_id
            else:
                await self._tell("scrape.ended", job_id=job_id, status=NEVER, ads_count=0)

    def new_id(self) -> str:
        while (made := f"scrape_{self._retoma.ids.new()[:DIGITS]}") in self._jobs:
            pass
        return made

    async def under_key(self, key: str) -> str | None:
        """The one that was begun under it, if that is still kept."""
        found = self._keys.get(key)
        if found is not None:
            with suppress(NotFound):
                await self.job(found)
                return found
        return None

    async def begin(self, order: Order) -> None:
        """Told first: what the log does not know of has never been."""
        await self._tell(
            "scrape.began",
            job_id=order.id,
            session=order.session,
            proxy=order.proxy,
            key=order.key,
            filters=asdict(order.filters),
        )
        try:
            job = await self._retoma.submit(KIND, order, key=order.id)
        except Exception:
            await self._tell("scrape.ended", job_id=order.id, status=NEVER, ads_count=0)
            raise
        self._know(order, job.id)
        self._live = order.id

    async def check_same(self, job_id: str, digest: str) -> None:
        if order_of(await self.job(job_id)).digest != digest:
            raise IdempotencyMismatch(
                say("the key was used for {job}, which asked for something else", job=job_id)
            )

    async def under_way(self) -> str | None:
        """The one that is not over, if there is one; that it is over is told first."""
        if self._live is not None:
            await self.told(self._live)
        return self._live

    async def told(self, job_id: str) -> Seen:
        """How it stands; that it is over stands in the log before anybody hears of it."""
        seen = await self.seen(job_id)
        if seen.status in ENDS:
            async with self._ending:
                if self._live == job_id:
                    await self._tell(
                        "scrape.ended",
                        job_id=job_id,
                        status=seen.status,
                        ads_count=seen.ads_count,
                        error=seen.error,
                    )
                    self._live = None
        return seen

    async def cancel(self, job_id: str) -> None:
        """Ended soon after this, if it was not over before."""
        job = await self.job(job_id)
        if not job.ended:
            await self._retoma.cancel(job.id, actor=ACTOR)

    async def end_live(self) -> None:
        """Over when this returns."""
        live = await self.under_way()
        if live is None:
            return
        await self.cancel(live)
        for _ in range(int(PATIENCE / LOOK)):
            if await self.under_way() is None:
                return
            await self._retoma.clock.sleep(LOOK)
        raise Unsure(say("{job} does not end; ask again", job=live))

    async def job(self, job_id: str) -> Job:
        number = self._jobs.get(job_id)
        if number is None:
            raise NotFound(say("there is no scrape {job!r}", job=job_id[:100]))
        return await self._retoma.get(number)

    async def seen(self, job_id: str) -> Seen:
        job = await self.job(job_id)
        if job.state is State.DONE:
            found: Found = decode(job.result or "null", Found)
            return Seen(
                job_id=job_id,
                status=ScrapeStatus.COMPLETED if found.ads_count else ScrapeStatus.EMPTY,
                ads_count=found.ads_count,
                progress_pct=100.0,
                url=found.url,
            )
        again = ScrapeStatus.QUEUED if job.epoch else ScrapeStatus.PENDING
        dead = job.state is State.DEAD
        cause = (await self._retoma.dead.causes([job.id])).get(job.id) if dead else None
        return Seen(
            job_id=job_id,
            status=STATUS_OF.get(job.state, again),
            ads_count=int((job.note or "0").split()[0]),
            progress_pct=None if job.progress is None else round(100 * job.progress, 1),
            error=None if cause is None else cause.message,
            error_code=None if cause is None else cause.code,
        )

    def _know(self, order: Order, number: int) -> None:
        self._jobs[order.id] = number
        if order.key is not None:
            self._keys[order.key] = order.id


def order_of(job: Job) -> Order:
    order: Order = decode(job.payload, Order)
    return order
