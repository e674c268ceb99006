"""The worker: one session and one scrape at a time; requests wait for each other."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Callable, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from retoma.db import DatabaseError
from retoma.engine import store
from retoma.engine.log import get_logger
from retoma.engine.rules.errors import IllegalMove, NotFound, Permanent, RetomaError
from retoma.library import Retoma
from retoma.outbound import Outbound, Proxy
from retoma.programs.worker import session as sessions
from retoma.programs.worker.adapters import Page, SiteAdapter
from retoma.programs.worker.logbook import Logbook
from retoma.programs.worker.model import SESSION_OVER, Filters, ScrapeRequest, SessionState
from retoma.programs.worker.results import Storage, tidy
from retoma.programs.worker.scrapes import ACTOR, LOOK, NEVER, Scrapes, Seen
from retoma.programs.worker.session import Record, Session
from retoma.programs.worker.way import Way, proxy_at
from retoma.secret import Secret
from retoma.vault import SecretSlot, Unreadable, Vault
from retoma.words import say

TIDY: Final = 3600.0  # seconds between two clean-ups of old results
FIRST: Final = Filters(start="2000-01-01", end="2000-01-01")  # for the first page of a session
log = get_logger("retoma.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The configuration of a worker."""

    site: str
    adapter: SiteAdapter
    folder: Path
    way: Callable[..., Way] = Way  # how its sessions reach the site
    keys: bool = True  # whether it supports Idempotency-Key
    limit: float = 30.0  # seconds without an answer: stuck
    watch: float = 15.0  # seconds between two health checks of a session
    private: Set[str] = frozenset()  # hosts of proxies that may stand in a private network
    keep: float = 30 * 86_400.0  # seconds that results are kept
    results_token: Secret | None = None
    storage: str | None = None  # s3://…; None keeps results in the folder
    storage_keys: tuple[str, str] | None = field(default=None, repr=False)
    misbehaves: bool = False  # accepts faults on demand; for tests and the demo


class Worker:
    """Runs the session and the scrapes of one data folder."""

    def __init__(self, config: Config, retoma: Retoma, out: Outbound) -> None:
        self.config = config
        self.retoma = retoma
        self.log = Logbook(config.folder)
        self.scrapes = self.make_scrapes()
        self.storage = (
            None
            if config.storage is None
            else Storage(out, config.storage, config.storage_keys)
        )
        self._out = out
        self._lock = asyncio.Lock()
        self._session: Session | None = None
        self._last: Record | None = None  # a session that ended before this process started

    def make_scrapes(self) -> Scrapes:
        return Scrapes(self.retoma, self.log, self.record_event)

    @asynccontextmanager
    async def alive(self) -> AsyncIterator[None]:
        """Run the worker within the block. Locks the data folder."""
        lock = os.open(self.config.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise IllegalMove(say("another worker uses this folder")) from None
            await self._wake()
            tasks = [asyncio.create_task(each()) for each in (self._look, self._tidy)]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                if self._session is not None:
                    await self._session.stop()
        finally:
            os.close(lock)

    async def begin_session(
        self, server: str, user: str, password: str, *, refresh: bool
    ) -> Record:
        """Begin a session. An open one is ended first if `refresh` is set; otherwise IllegalMove."""
        proxy = self._proxy(server, user, password)
        async with self._lock:
            alive = self._session is not None and not self._session.record.over
            if alive and not refresh:
                raise IllegalMove(
                    say("there is a session already: end it, or set force_refresh")
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
                await vault.put(
                    _slot_of(record), sessions.format_credentials(user, password), actor=ACTOR
                )
            await self.record_event("session.began", session=record.id, proxy=record.server)
            sessions.write(self.config.folder, record)
            self._start(record, proxy)
            return record

    async def end_session(self) -> None:
        """End the session. When this returns nothing more goes through its proxy."""
        async with self._lock:
            await self._end_session()

    async def session_state(self) -> tuple[SessionState, str | None]:
        record = self._last if self._session is None else self._session.record
        if record is None:
            return SessionState.TERMINATED, None
        if record.state is SessionState.READY and await self.scrapes.under_way() is not None:
            return SessionState.SCRAPING, None
        return record.state, record.error

    async def _end_session(self) -> None:
        session, last = self._session, self._last
        await self.scrapes.end_live()
        if session is not None:
            await session.stop()
            await session.become(SessionState.TERMINATED)
            last = session.record
        if last is not None:
            sessions.write(self.config.folder, replace(last, state=SessionState.TERMINATED))
            await self._forget(last)
        self._session = self._last = None

    async def _forget(self, record: Record) -> None:
        with suppress(NotFound):  # a proxy without a password
            await (await self._vault()).remove(_slot_of(record), actor=ACTOR)

    def _start(self, record: Record, proxy: Proxy) -> None:
        config = self.config
        way = config.way(
            self._out,
            proxy,
            site=config.site,
            adapter=config.adapter,
            limit=config.limit,
            private=config.private,
            isolate=self.retoma.isolate,
        )
        self._session = Session(
            config.folder, record, way, self.record_event, self.retoma.clock, config.watch
        )
        self._session.start(FIRST)

    def _proxy(self, server: str, user: str, password: str) -> Proxy:
        return proxy_at(server, user, password, plain=self.config.site.startswith("http:"))

    async def begin_scrape(
        self, filters: Filters, *, most: int | None, batch: int, key: str | None, digest: str
    ) -> str:
        """Begin a scrape and return its id. IllegalMove without a ready session or during another scrape."""
        used_key = key if self.config.keys else None
        async with self._lock:
            known = None if used_key is None else await self.scrapes.under_key(used_key)
            if known is not None:
                await self.scrapes.check_same(known, digest)
                return known
            session = await self._free_session()
            request = ScrapeRequest(
                id=self.scrapes.new_id(),
                session=session.id,
                proxy=session.server,
                filters=filters,
                most=most,
                batch=batch,
                key=used_key,
                digest=digest,
            )
            await self.scrapes.begin(request)
            return request.id

    async def find_scrape(self, key: str) -> str:
        """Return the id of the scrape that was begun under this key."""
        job_id = await self.scrapes.under_key(key)
        if job_id is None:
            raise NotFound(say("no scrape was begun under this key"))
        return job_id

    async def scrape(self, job_id: str) -> Seen:
        return await self.scrapes.check(job_id)

    async def cancel_scrape(self, job_id: str) -> Seen:
        await self.scrapes.cancel(job_id)
        return await self.scrape(job_id)

    async def page(self, request: ScrapeRequest, at: str | None) -> Page:
        """Read a page through the session that the scrape was begun with."""
        session = self._session_of(request)
        try:
            page: Page = await session.page(request.filters, at)
        except RetomaError:
            if not session.record.over:
                raise
            why = session.record.error or session.record.state
            raise Permanent(
                say("the session is over: {why}", why=why), code=SESSION_OVER
            ) from None
        return page

    def is_ready(self, request: ScrapeRequest) -> bool:
        """Whether the scrape's session is ready; False while it resumes after a restart."""
        return self._session_of(request).record.state is SessionState.READY

    def _session_of(self, request: ScrapeRequest) -> Session:
        session = self._session
        if session is None or session.record.id != request.session or session.record.over:
            raise Permanent(say("the session of this scrape is over"), code=SESSION_OVER)
        return session

    async def _free_session(self) -> Record:
        session = self._session
        if session is None or session.record.state is not SessionState.READY:
            raise IllegalMove(say("no session is ready: begin one first"))
        live = await self.scrapes.under_way()
        if live is not None:
            raise IllegalMove(
                say("scrape {job} is still running: one scrape at a time", job=live)
            )
        return session.record

    async def _wake(self) -> None:
        """Resume what the last process left open, or record that it has ended."""
        await self.record_event("worker.started", site=self.config.site)
        await self.scrapes.wake()
        record = sessions.read(self.config.folder)
        await self._settle_log(record)
        if record is not None and not record.over:
            record = await self._resumed(record)
        if record is not None:
            await self._forget(record)
            self._last = record

    async def _settle_log(self, record: Record | None) -> None:
        """Complete the log where the last process was killed between the log and the session file."""
        for session in self.log.unended("session", "session"):
            mine = record is not None and record.id == session
            if record is None or not mine:
                await self.record_event("session.ended", session=session, state=NEVER)
            elif record.over:
                await self.record_event(
                    "session.ended", session=session, proxy=record.server, state=record.state
                )

    async def _resumed(self, record: Record) -> Record | None:
        """Resume a session through the same proxy; returns its final record if that is impossible."""
        try:
            secret = await (await self._vault()).get(_slot_of(record))
        except Unreadable as error:
            ended = replace(record, state=SessionState.TERMINATED, error=str(error))
            sessions.write(self.config.folder, ended)
            await self.record_event(
                "session.ended",
                session=record.id,
                proxy=record.server,
                state=ended.state,
                error=ended.error,
            )
            return ended
        user, password = sessions.parse_credentials(secret)
        scheme = "https" if record.tls else "http"
        await self.record_event("session.resumed", session=record.id, proxy=record.server)
        begun = replace(record, state=SessionState.INITIALIZING)
        self._start(begun, self._proxy(f"{scheme}://{record.server}", user, password))
        return None

    async def _look(self) -> None:
        """Log scrapes that ended while no request asked for them."""
        while True:
            await self.retoma.clock.sleep(LOOK)
            try:
                await self.scrapes.under_way()
            except (DatabaseError, OSError):
                log.exception("worker.cannot_look")

    async def _tidy(self) -> None:
        while True:
            before = self.retoma.clock.wall() - self.config.keep
            try:
                loop = asyncio.get_running_loop()
                removed = await loop.run_in_executor(None, tidy, self.config.folder, before)
                log.info("worker.tidied", removed=removed)
            except OSError:
                log.exception("worker.cannot_tidy")
            await self.retoma.clock.sleep(TIDY)

    async def record_event(self, event: str, **what: Any) -> None:
        database = await self.retoma.database()
        self.log.record(event, await database.read(store.now), **what)

    async def _vault(self) -> Vault:
        return Vault(
            await self.retoma.database(),
            self.retoma.ids,
            key_file=self.config.folder / "secret.key",
        )


def _slot_of(record: Record) -> SecretSlot:
    return SecretSlot("worker_session", "proxy", record.id)
