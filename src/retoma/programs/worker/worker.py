"""The worker itself: one session and one scrape at a time; whoever asks comes one after another."""

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
from retoma.programs.worker.model import SESSION_OVER, Filters, Order, SessionState
from retoma.programs.worker.results import Storage, tidy
from retoma.programs.worker.scrapes import ACTOR, LOOK, NEVER, Scrapes, Seen
from retoma.programs.worker.session import Record, Session
from retoma.programs.worker.way import Way, proxy_at
from retoma.secret import Secret
from retoma.vault import SecretSlot, Unreadable, Vault
from retoma.words import say

TIDY: Final = 3600.0  # seconds between two looks for results that nobody fetches any more
FIRST: Final = Filters(start="2000-01-01", end="2000-01-01")  # to warm up with
log = get_logger("retoma.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How one worker is set up."""

    site: str
    adapter: SiteAdapter
    folder: Path
    way: Callable[..., Way] = Way  # how its sessions reach the site
    keys: bool = True  # whether it hears of Idempotency-Key
    limit: float = 30.0  # seconds without an answer: stuck
    watch: float = 15.0  # seconds between two looks at a session
    private: Set[str] = frozenset()  # hosts of proxies that may stand in a private network
    keep: float = 30 * 86_400.0  # seconds that results stay
    results_token: Secret | None = None
    storage: str | None = None  # s3://…; else results stay here
    storage_keys: tuple[str, str] | None = field(default=None, repr=False)
    misbehaves: bool = False  # whether it does so when told; for tests and the demo


class Worker:
    """One for each data folder."""

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
        self._turn = asyncio.Lock()
        self._session: Session | None = None
        self._last: Record | None = None  # a session that was over before this process began

    def make_scrapes(self) -> Scrapes:
        return Scrapes(self.retoma, self.log, self.tell)

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
            beside = [asyncio.create_task(each()) for each in (self._look, self._tidy)]
            try:
                yield
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)
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
            await self.tell("session.began", session=record.id, proxy=record.server)
            sessions.write(self.config.folder, record)
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
        with suppress(NotFound):  # a proxy that asks for no password
            await (await self._vault()).remove(_place(record), actor=ACTOR)

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
            known = None if wanted is None else await self.scrapes.under_key(wanted)
            if known is not None:
                await self.scrapes.check_same(known, digest)
                return known
            session = await self._free_session()
            order = Order(
                id=self.scrapes.new_id(),
                session=session.id,
                proxy=session.server,
                filters=filters,
                most=most,
                batch=batch,
                key=wanted,
                digest=digest,
            )
            await self.scrapes.begin(order)
            return order.id

    async def find_scrape(self, key: str) -> str:
        """Which scrape was begun under this key."""
        found = await self.scrapes.under_key(key)
        if found is None:
            raise NotFound(say("no scrape was begun under that key"))
        return found

    async def scrape(self, job_id: str) -> Seen:
        return await self.scrapes.told(job_id)

    async def cancel_scrape(self, job_id: str) -> Seen:
        await self.scrapes.cancel(job_id)
        return await self.scrape(job_id)

    async def page(self, order: Order, at: str | None) -> Page:
        """For the story of a scrape: a page through the session it was begun with."""
        session = self._session_of(order)
        try:
            page: Page = await session.page(order.filters, at)
        except RetomaError:
            if not session.record.over:
                raise
            why = session.record.error or session.record.state
            raise Permanent(
                say("the session is over: {why}", why=why), code=SESSION_OVER
            ) from None
        return page

    def is_ready(self, order: Order) -> bool:
        """Whether its session can be used; False: not yet, after the worker was started again."""
        return self._session_of(order).record.state is SessionState.READY

    def _session_of(self, order: Order) -> Session:
        session = self._session
        if session is None or session.record.id != order.session or session.record.over:
            raise Permanent(say("the session of this scrape is over"), code=SESSION_OVER)
        return session

    async def _free_session(self) -> Record:
        session = self._session
        if session is None or session.record.state is not SessionState.READY:
            raise IllegalMove(say("there is no session that is ready: begin one first"))
        live = await self.scrapes.under_way()
        if live is not None:
            raise IllegalMove(say("{job} is under way: one scrape at a time", job=live))
        return session.record

    # — waking, and looking —

    async def _wake(self) -> None:
        """What was under way when the last process ended goes on, or is said to be over."""
        await self.tell("worker.started", site=self.config.site)
        await self.scrapes.wake()
        record = sessions.read(self.config.folder)
        await self._settle_log(record)
        if record is not None and not record.over:
            record = await self._resumed(record)
        if record is not None:
            await self._forget(record)
            self._last = record

    async def _settle_log(self, record: Record | None) -> None:
        """What the last process had told of, or written down, and not the other."""
        for session in self.log.unended("session", "session"):
            mine = record is not None and record.id == session
            if record is None or not mine:
                await self.tell("session.ended", session=session, state=NEVER)
            elif record.over:
                await self.tell(
                    "session.ended", session=session, proxy=record.server, state=record.state
                )

    async def _resumed(self, record: Record) -> Record | None:
        """None: it is coming up again, through the same proxy. Else how it ended."""
        try:
            secret = await (await self._vault()).get(_place(record))
        except Unreadable as error:
            ended = replace(record, state=SessionState.TERMINATED, error=str(error))
            sessions.write(self.config.folder, ended)
            await self.tell(
                "session.ended",
                session=record.id,
                proxy=record.server,
                state=ended.state,
                error=ended.error,
            )
            return ended
        user, password = sessions.unsealed(secret)
        scheme = "https" if record.tls else "http"
        await self.tell("session.resumed", session=record.id, proxy=record.server)
        begun = replace(record, state=SessionState.INITIALIZING)
        self._start(begun, self._proxy(f"{scheme}://{record.server}", user, password))
        return None

    async def _look(self) -> None:
        """A scrape that ended while nobody asked is told of, too."""
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

    async def tell(self, event: str, **what: Any) -> None:
        database = await self.retoma.database()
        self.log.tell(event, await database.read(store.now), **what)

    async def _vault(self) -> Vault:
        return Vault(
            await self.retoma.database(),
            self.retoma.ids,
            key_file=self.config.folder / "secret.key",
        )


def _place(record: Record) -> SecretSlot:
    return SecretSlot("worker_session", "proxy", record.id)
