"""What the tests of the web have in common: a house on a database, and people who ask it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
from fastapi import APIRouter, FastAPI

from retoma import Context, Park, Permanent, Retoma, Retry, settings
from retoma.access import Access, Role
from retoma.bootstrap import install_applications
from retoma.cli.serve import Server, prepare
from retoma.console.connections import ConnectionLimits
from retoma.console.listening import bound_to
from retoma.engine.ports import Clock
from retoma.manifest import Application
from retoma.settings import Settings
from retoma.web import Bound, build_site

House = TypeVar("House")
ROOT_KEY = "CANARY-" + "k" * 40  # as RETOMA_API_KEY would have it
BASE = "http://127.0.0.1"
AT_ONCE = Retry(attempts=1, base=0, cap=0)
# Nobody is slowed down unless that is the promise.
PATIENT = Bound(per_key=1e6, per_address=1e6)


def stories(url: str, **how: Any) -> Retoma:
    """Jobs that end as their payload says."""
    app = Retoma(url, **how)

    @app.job(retry=AT_ONCE)
    async def work(ctx: Context, wanted: dict[str, Any]) -> Any:
        await ctx.step("looked", noop)
        if "evidence" in wanted:
            await ctx.attach("page.html", wanted["evidence"].encode())
        if "dies" in wanted:
            raise Permanent(wanted["dies"], code=wanted.get("code", "SHOP"))
        if "breaks" in wanted:
            raise RuntimeError(wanted["breaks"])
        if "parks" in wanted and ctx.generation == 1 and not ctx.memory.progress:
            await ctx.progress(1.0)
            return Park(wanted["parks"])
        return wanted.get("gives")

    @app.job
    async def count(ctx: Context, n: int) -> int:
        return n + 1

    return app


async def noop() -> None: ...


def application(app: Retoma) -> Application:
    return Application(name="test", kinds=list(app.kinds))


def set_up(url: str, **given: Any) -> Settings:
    return settings.read(
        **{"database_url": url, "serve_port": 80, "api_key": ROOT_KEY, **given}
    )


@dataclass(frozen=True, slots=True)
class World:
    """A house, and a client for each role."""

    app: Retoma
    site: FastAPI
    admin: httpx2.AsyncClient
    operator: httpx2.AsyncClient
    viewer: httpx2.AsyncClient
    nobody: httpx2.AsyncClient

    @property
    def everybody(self) -> Sequence[httpx2.AsyncClient]:
        return self.admin, self.operator, self.viewer, self.nobody


@asynccontextmanager
async def world(
    url: str, *, bound: Bound = PATIENT, clock: Clock | None = None, **given: Any
) -> AsyncIterator[World]:
    app = stories(url, clock=clock)
    chosen = set_up(url, **given)
    others = install_applications(app, chosen)
    site = build_site(app, chosen, [application(app), *others], bound=bound)
    async with app:
        access = Access(await app.database(), app.clock, app.ids)
        keys = {
            role: (await access.create_key(name, role, actor="test")).token
            for name, role in (("Olga", Role.OPERATOR), ("Vera", Role.VIEWER))
        }
        made = World(
            app,
            site,
            client(site, ROOT_KEY),
            client(site, keys[Role.OPERATOR]),
            client(site, keys[Role.VIEWER]),
            client(site),
        )
        try:
            yield made
        finally:
            for each in made.everybody:
                await each.aclose()


def client(site: FastAPI, key: str | None = None, **how: Any) -> httpx2.AsyncClient:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    transport = httpx2.ASGITransport(app=site)
    return httpx2.AsyncClient(transport=transport, base_url=BASE, headers=headers, **how)


def code_of(response: httpx2.Response) -> tuple[int, str]:
    """A problem's status and code, once it was seen to be one."""
    assert "application/problem+json" == response.headers["content-type"], response.text
    told = response.json()
    assert response.status_code == told["status"]
    assert {"type", "title", "detail", "trace_id"} <= told.keys()
    assert told["trace_id"] == response.headers["x-trace-id"]
    return response.status_code, told["code"]


# — a server on a socket, in a thread of its own —


@contextmanager
def beside(house: AbstractAsyncContextManager[tuple[House, Server]]) -> Iterator[House]:
    """A house that lives in a thread of its own; its server runs there until the block ends."""
    ready = threading.Event()
    made: list[House] = []
    stop: list[Callable[[], object]] = []

    async def live() -> None:
        async with house as (built, server):
            loop = asyncio.get_running_loop()
            stop.append(lambda: loop.call_soon_threadsafe(server.stop))
            made.append(built)
            await server.run(ready.set)

    def run() -> None:
        try:
            asyncio.run(live())
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(120)
        assert made, "the house did not come up"
        yield made[0]
    finally:
        if stop:
            stop[0]()
        thread.join(60)
        assert not thread.is_alive()


def server_alone(app: Retoma, application: Application, url: str, **given: Any) -> Server:
    """Without its own runner: that one would take back at once what a neighbour left."""
    listening = bound_to("127.0.0.1", 0)
    chosen = set_up(url, serve_port=listening.getsockname()[1], **given)
    return Server(build_site(app, chosen, [application], bound=PATIENT), [listening])


async def link_into(app: Retoma, origin: str) -> str:
    """It signs Ana in, an admin."""
    access = Access(await app.database(), app.clock, app.ids)
    return f"{origin}/enter/{await access.invite('Ana', Role.ADMIN, 'cli')}"


@dataclass(frozen=True, slots=True)
class Served:
    """Where it listens."""

    origin: str
    site: Any


@contextmanager
def served(
    url: str,
    *,
    bound: Bound = PATIENT,
    routers: Sequence[APIRouter] = (),
    limits: ConnectionLimits | None = None,
    **given: Any,
) -> Iterator[Served]:
    """The same server that `retoma serve` runs, beside the test."""

    @asynccontextmanager
    async def house() -> AsyncIterator[tuple[Served, Server]]:
        chosen = set_up(url, **{"serve_port": 0, **given})
        async with stories(url) as app:
            server = await prepare(
                app,
                chosen,
                [application(app)],
                bound=bound,
                routers=routers,
                limits=limits,
            )
            yield Served(server.origin, server.site), server

    with beside(house()) as made:
        yield made
