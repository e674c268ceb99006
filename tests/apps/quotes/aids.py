"""A house with the quotes application in it, and the four services of its world on loopback."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from retoma import Retoma
from retoma.apps.quotes import APP, store
from retoma.apps.quotes.sandbox import (
    ANTHROPIC_KEY,
    SERPAPI_KEY,
    Catalogue,
    Odd,
    Services,
    build_services,
)
from retoma.console.listening import Listener, bound_to
from retoma.db import adhoc
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.testing import FakeClock, drain
from retoma.toolkit.tools import Tools

WHO = "ana"


@dataclass(frozen=True, slots=True)
class World:
    """One house and its services."""

    app: Retoma
    services: Services
    catalogue: Catalogue
    settings: Settings

    async def quote(self, n: int, odd: Odd | None = None) -> int:
        wanted = store.NewQuote(self.catalogue.describe(n, odd))
        return await self.app.write(lambda tx: store.add_quote(tx, wanted, actor=WHO))

    async def lote(self, numbers: range) -> store.Added:
        wanted = [store.NewQuote(self.catalogue.describe(n)) for n in numbers]
        return await self.app.write(
            lambda tx: store.add_lote(tx, wanted, actor=WHO, name="lote")
        )

    async def drained(self) -> None:
        await drain(self.app, within=100)  # seconds, on a loaded machine

    async def seen(self, quote: int) -> dict[str, Any]:
        database = await self.app.database()
        return asdict(await database.read(lambda tx: store.quote_seen(tx, quote)))

    async def rows(self, sql: str, **params: Any) -> list[Any]:
        database = await self.app.database()
        return await database.read(lambda tx: tx.all(adhoc(sql), **params))

    def calls(self, service: str) -> int:
        return len(self.services.log(service))


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[int]:
    """On a free port of loopback; the port."""
    socket = bound_to("127.0.0.1", 0)
    listener = Listener(app, [socket], lifespan="off")
    begun = asyncio.Event()
    task = asyncio.create_task(listener.run(begun.set))
    await begun.wait()
    try:
        yield socket.getsockname()[1]
    finally:
        listener.stop()
        await task


def settings_for(port: int, url: str = "sqlite:///retoma.db") -> Settings:
    base = f"http://127.0.0.1:{port}"
    return Settings(
        database_url=url,
        anthropic_url=f"{base}/anthropic",
        anthropic_key=ANTHROPIC_KEY,
        serpapi_url=f"{base}/serpapi",
        serpapi_key=SERPAPI_KEY,
        fipe_url=base,
        shop_hosts=f"127.0.0.1:{port}",
        screenshots="off",
    )


@asynccontextmanager
async def world(
    url: str, folder: Path, *, told: Mapping[str, Any] | None = None, **how: Any
) -> AsyncIterator[World]:
    """`told`: settings of its own."""
    async with AsyncExitStack() as stack:
        catalogue = Catalogue()
        services = build_services(catalogue, **how)
        port = await stack.enter_async_context(serving(services))
        settings = settings_for(port, url).model_copy(update=told)
        app = await stack.enter_async_context(Retoma(url, clock=FakeClock()))
        out = await stack.enter_async_context(Outbound(private=frozenset({"127.0.0.1"})))
        app.install(APP, Tools(app, out, settings=settings, key_file=folder / "key"))
        yield World(app, services, catalogue, settings)
