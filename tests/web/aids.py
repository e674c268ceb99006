"""What the tests of the web have in common: a house on a database, and people who ask it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from fastapi import APIRouter, FastAPI

from retoma import Context, Park, Permanent, Retoma, Retry, settings
from retoma.access import Access, Role
from retoma.cli.serve import prepare
from retoma.engine.ports import Clock
from retoma.manifest import Application
from retoma.settings import Settings
from retoma.web import Bound, build_site

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
    site = build_site(app, set_up(url, **given), [application(app)], bound=bound)
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


@dataclass(frozen=True, slots=True)
class Served:
    """Where it listens."""

    origin: str
    site: Any


@contextmanager
def served(
    url: str, *, bound: Bound = PATIENT, routers: Sequence[APIRouter] = (), **given: Any
) -> Iterator[Served]:
    """The same server that `retoma serve` runs, beside the test."""
    ready = threading.Event()
    told: list[Any] = []

    async def run() -> None:
        app = stories(url)
        chosen = set_up(url, **{"serve_port": 0, **given})
        async with app:
            server = await prepare(
                app, chosen, [application(app)], bound=bound, routers=routers
            )
            told[:] = [server, asyncio.get_running_loop()]
            await server.run(ready.set)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert ready.wait(60)
        yield Served(told[0].origin, told[0].site)
    finally:
        if told:
            told[1].call_soon_threadsafe(told[0].stop)
        thread.join(30)
        assert not thread.is_alive()
