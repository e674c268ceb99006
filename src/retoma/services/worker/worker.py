"""The worker itself: one session, one scrape at a time, and what it knows of those before."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from retoma.codec import decode
from retoma.engine import store
from retoma.engine.errors import (
    IdempotencyMismatch,
    IllegalMove,
    NotFound,
    Permanent,
    RetomaError,
    Unsure,
)
from retoma.engine.job import Job
from retoma.engine.states import State
from retoma.library import Retoma
from retoma.outbound import Outbound, Proxy
from retoma.secret import Secret
from retoma.services.worker import session as sessions
from retoma.services.worker.adapters import Page, SiteAdapter
from retoma.services.worker.logbook import Logbook
from retoma.services.worker.model import (
    ENDS,
    SESSION_OVER,
    STATUS_OF,
    Filters,
    Found,
    Order,
    ScrapeStatus,
    SessionState,
)
from retoma.services.worker.results import Storage
from retoma.services.worker.session import Record, Session
from retoma.services.worker.way import Way, proxy_at
from retoma.vault import Place, Vault
from retoma.words import say

KIND: Final = "scrape"
ACTOR: Final = "worker"
NEVER: Final = "never"  # how a scrape ended that was told of and then not begun
LOOK: Final = 0.25  # seconds between two looks whether a scrape has ended
PATIENCE: Final = 20.0  # seconds for a scrape that was cancelled to end
DIGITS: Final = 8  # of an id, after `scrape_`
PAGE: Final = 200  # jobs read at a time when the worker wakes
FIRST: Final = Filters(start="2000-01-01", end="2000-01-01")  # to warm up with


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How one worker is set up."""

    site: str
    adapter: SiteAdapter
    folder: Path
    keys: bool = True  # whether it hears of Idempotency-Key
    limit: float = 30.0  # seconds without an answer: stuck
    watch: float = 15.0  # seconds between two looks at a session
    private: Set[str] = frozenset()  # hosts of proxies that may stand in a private network
    results_token: Secret | None = None
    storage: str | None = None  # s3://…; else results stay here
    storage_keys: tuple[str, str] | None = field(default=None, repr=False)
    misbehaves: bool = False  # whether it does so when told; for tests and the demo


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


class Worker:
    """One for each data folder; whoever asks comes one after another."""

    def __init__(self, config: Config, retoma: Retoma, out: Outbound) -> None:
        self.config = config
        self.retoma = retoma
        self.log = Logbook(config.folder)
        self.storage = (
            None
            if config.storage is None
            else Storage(out, config.storage, config.storage_keys)
        )
        self._out = out
        self._turn = asyncio.Lock()
        self._ending = asyncio.Lock()
        self._session: Session | None = None
        self._last: Record | None = None  # a session that was over before this process began
        self._jobs: dict[str, int] = {}
        self._keys: dict[str, str] = {}
        self._live: str | None = None  # the scrape that has not been seen to end

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """For as long as the program runs; alone with its folder."""
        lock = os.open(self.config.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise IllegalMove(say("another worker is at work in this folder")) from None
            await self._wake()
            looking = asyncio.create_task(self._look())
            try:
                yield
            finally:
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)
                if self._session is not None:
                    await self._session.stop()
        finally:
            os.close(lock)

    # — the session —

    async def begin_session(
        self, server: str, user: str, password: str, *, refresh: bool
    ) -> Record:
        """A new one; one that is alive is ended first, if `refresh` says so."""
        proxy = self._proxy(server, user, password)
        async with self._turn:
            alive = self._session is not None and not self._session.record.over
            if alive and not refresh:
                raise IllegalMove(
                    say("there is a session already: end it, or say force_refresh")
                )
            await self._end_session()
            record = Record(
                id=f"ses_{self.retoma.ids.new()[:16]}",
                server=f"{proxy.host}:{proxy.port}",
                tls=proxy.tls,
                state=SessionState.INITIALIZING,
            )
            if user:
                vault = await self._vault()
                await vault.put(_place(record), sessions.sealed(user, password), actor=ACTOR)
            sessions.write(self.config.folder, record)
            await self.tell("session.began", session=record.id, proxy=record.server)
            self._start(record, proxy)
            return record

    async def end_session(self) -> None:
        """Confirmed when this returns: nothing more goes through its proxy."""
        async with self._turn:
            await self._end_session()

    async def session_state(self) -> tuple[SessionState, str | None]:
        record = self._last if self._session is None else self._session.record
        if record is None:
            return SessionState.TERMINATED, None
        if record.state is SessionState.READY and await self._scrape_under_way() is not None:
            return SessionState.SCRAPING, None
        return record.state, record.error

    async def _end_session(self) -> None:
        session, last = self._session, self._last
        await self._cancel_live()
        if session is not None:
            await session.stop()
            await session.become(SessionState.TERMINATED)
            last = session.record
        if last is not None:
            with suppress(NotFound):  # a proxy that asks for no password
                await (await self._vault()).remove(_place(last), actor=ACTOR)
            sessions.write(self.config.folder, replace(last, state=SessionState.TERMINATED))
        self._session = self._last = None

    def _start(self, record: Record, proxy: Proxy) -> None:
        config = self.config
        way = Way(
            self._out,
            proxy,
            site=config.site,
            adapter=config.adapter,
            limit=config.limit,
            private=config.private,
        )
        self._session = Session(
            config.folder, record, way, self.tell, self.retoma.clock, config.watch
        )
        self._session.start(FIRST)

    def _proxy(self, server: str, user: str, password: str) -> Proxy:
        return proxy_at(server, user, password, plain=self.config.site.startswith("http:"))

    # — scrapes —

    async def begin_scrape(
        self, filters: Filters, *, most: int | None, batch: int, key: str | None, digest: str
    ) -> str:
        """Its id. Refused without a ready session, and while another is under way."""
        wanted = key if self.config.keys else None
        async with self._turn:
            known = None if wanted is None else self._keys.get(wanted)
            if known is not None:
                await self._check_same(known, digest)
                return known
            session = await self._free_session()
            order = Order(
                id=self._new_id(),
                session=session.id,
                proxy=session.server,
                filters=filters,
                most=most,
                batch=batch,
                key=wanted,
                digest=digest,
            )
            # Told first: what this log does not know of has never been.
            await self.tell(
                "scrape.began",
                job_id=order.id,
                session=session.id,
                proxy=session.server,
                key=wanted,
            )
            job = await self._submitted(order)
            self._know(order, job.id)
            self._live = order.id
            return order.id

    async def _submitted(self, order: Order) -> Job:
        try:
            return await self.retoma.submit(KIND, order, key=order.id)
        except Exception:
            await self.tell("scrape.ended", job_id=order.id, status=NEVER, ads_count=0)
            raise

    async def find_scrape(self, key: str) -> str:
        """Which scrape was begun under this key."""
        found = self._keys.get(key) if self.config.keys else None
        if found is None:
            raise NotFound(say("no scrape was begun under that key"))
        return found

    async def scrape(self, job_id: str) -> Seen:
        seen = await self._seen(job_id)
        if seen.status in ENDS:
            await self._ended(seen)
        return seen

    async def cancel_scrape(self, job_id: str) -> Seen:
        """Ended soon after this, if it was not over before."""
        job = await self._job(job_id)
        if not job.ended:
            await self.retoma.cancel(job.id, actor=ACTOR)
        return await self.scrape(job_id)

    async def page(self, order: Order, at: str | None) -> Page:
        """For the story of a scrape: a page through the session it was begun with."""
        if not self.is_ready(order):
            raise Permanent("the session of this scrape is over", code=SESSION_OVER)
        session = self._session
        assert session is not None  # noqa: S101 — it is ready
        try:
            page: Page = await session.page(order.filters, at)
        except RetomaError:
            if not session.record.over:
                raise
            why = session.record.error or session.record.state
            raise Permanent(f"the session is over: {why}", code=SESSION_OVER) from None
        return page

    def is_ready(self, order: Order) -> bool:
        """Whether its session can be used; False: not yet, after the worker was started again."""
        session = self._session
        if session is None or session.record.id != order.session or session.record.over:
            raise Permanent("the session of this scrape is over", code=SESSION_OVER)
        return session.record.state is SessionState.READY

    async def _free_session(self) -> Record:
        session = self._session
        if session is None or session.record.state is not SessionState.READY:
            raise IllegalMove(say("there is no session that is ready: begin one first"))
        live = await self._scrape_under_way()
        if live is not None:
            raise IllegalMove(say("{job} is under way: one scrape at a time", job=live))
        return session.record

    async def _check_same(self, job_id: str, digest: str) -> None:
        job = await self._job(job_id)
        if _order(job).digest != digest:
            raise IdempotencyMismatch(
                say("the key was used for {job}, which asked for something else", job=job_id)
            )

    async def _scrape_under_way(self) -> str | None:
        """The one that is not over, if there is one; that it is over is told first."""
        if self._live is not None:
            seen = await self._seen(self._live)
            if seen.status in ENDS:
                await self._ended(seen)
        return self._live

    async def _cancel_live(self) -> None:
        live = await self._scrape_under_way()
        if live is None:
            return
        await self.retoma.cancel((await self._job(live)).id, actor=ACTOR)
        for _ in range(int(PATIENCE / LOOK)):
            if await self._scrape_under_way() is None:
                return
            await self.retoma.clock.sleep(LOOK)
        raise Unsure(say("{job} does not end; ask again", job=live))

    async def _seen(self, job_id: str) -> Seen:
        job = await self._job(job_id)
        if job.state is State.DONE:
            found: Found = decode(job.result or "null", Found)
            status = ScrapeStatus.COMPLETED if found.ads_count else ScrapeStatus.EMPTY
            return Seen(
                job_id=job_id,
                status=status,
                ads_count=found.ads_count,
                progress_pct=100.0,
                url=found.url,
            )
        again = ScrapeStatus.QUEUED if job.epoch else ScrapeStatus.PENDING
        dead = job.state is State.DEAD
        cause = (await self.retoma.dead_causes([job.id])).get(job.id) if dead else None
        return Seen(
            job_id=job_id,
            status=STATUS_OF.get(job.state, again),
            ads_count=int((job.note or "0").split()[0]),
            progress_pct=None if job.progress is None else round(100 * job.progress, 1),
            error=None if cause is None else cause.message,
            error_code=None if cause is None else cause.code,
        )

    async def _ended(self, seen: Seen) -> None:
        """Told once, and before anybody hears of it."""
        async with self._ending:
            if self._live == seen.job_id:
                await self.tell(
                    "scrape.ended",
                    job_id=seen.job_id,
                    status=seen.status,
                    ads_count=seen.ads_count,
                    error=seen.error,
                )
                self._live = None

    async def _job(self, job_id: str) -> Job:
        number = self._jobs.get(job_id)
        if number is None:
            raise NotFound(say("there is no scrape {job!r}", job=job_id[:100]))
        return await self.retoma.get(number)

    def _new_id(self) -> str:
        while (made := f"scrape_{self.retoma.ids.new()[:DIGITS]}") in self._jobs:
            pass
        return made

    def _know(self, order: Order, number: int) -> None:
        self._jobs[order.id] = number
        if order.key is not None:
            self._keys.setdefault(order.key, order.id)

    # — waking, and looking —

    async def _wake(self) -> None:
        """What was under way when the last process ended goes on, or is said to be over."""
        await self.tell("worker.started", site=self.config.site)
        await self._read_jobs()
        for job_id in self.log.unended():
            if job_id in self._jobs:
                self._live = job_id
            else:  # told, but never written down
                await self.tell("scrape.ended", job_id=job_id, status=NEVER, ads_count=0)
        record = sessions.read(self.config.folder)
        if record is None or record.over:
            self._last = record
            return
        secret = await (await self._vault()).get(_place(record))
        user, password = sessions.unsealed(secret)
        scheme = "https" if record.tls else "http"
        await self.tell("session.resumed", session=record.id, proxy=record.server)
        self._start(record, self._proxy(f"{scheme}://{record.server}", user, password))

    async def _read_jobs(self) -> None:
        """Every scrape that is kept."""
        before = None
        while page := await self.retoma.jobs(kind=KIND, before=before, limit=PAGE):
            for job in page:
                self._know(_order(job), job.id)
            before = page[-1].id

    async def _look(self) -> None:
        """A scrape that ended while nobody asked is told of, too."""
        while True:
            await self.retoma.clock.sleep(LOOK)
            await self._scrape_under_way()

    async def tell(self, event: str, **what: Any) -> None:
        database = await self.retoma.database()
        self.log.tell(event, await database.read(store.now), **what)

    async def _vault(self) -> Vault:
        return Vault(
            await self.retoma.database(),
            self.retoma.ids,
            key_file=self.config.folder / "secret.key",
        )


def _order(job: Job) -> Order:
    order: Order = decode(job.payload, Order)
    return order


def _place(record: Record) -> Place:
    return Place("worker_session", "proxy", record.id)
