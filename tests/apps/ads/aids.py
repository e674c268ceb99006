"""A house with the ads application in it, and a small world around it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from retoma import Retoma
from retoma.apps.ads import APP, store
from retoma.apps.ads.model import MediaType, NewMission
from retoma.db import adhoc
from retoma.outbound import Outbound
from retoma.secret import Secret
from retoma.testing import FakeClock, drain
from retoma.toolkit.tools import Tools
from tests.apps.ads.fakes import KEY, FakeWriter
from tests.outbound.fakes import Server, serving

WHO = "ana"


@dataclass(frozen=True, slots=True)
class World:
    """One orchestrator; its workers, writers and proxies by their ids."""

    app: Retoma
    workers: dict[str, Any]  # each answers as a worker does
    writers: dict[str, FakeWriter]
    proxies: list[str]

    async def add_worker(self, secrets: store.Secrets, name: str, server: Server) -> str:
        told: dict[str, Any] = {"name": name, "url": server.url, "api_key": Secret(KEY)}
        told["storage_domain"] = f"127.0.0.1:{server.port}"
        return await self.app.write(lambda tx: store.add_worker(tx, secrets, **told))

    async def add_writer(self, secrets: store.Secrets, name: str, server: Server) -> str:
        told: dict[str, Any] = {"name": name, "url": server.url, "api_key": Secret(KEY)}
        return await self.app.write(lambda tx: store.add_writer(tx, secrets, **told))

    async def new_proxy(self, n: int) -> str:
        """One more, while the orchestrator works."""
        vault = await self.app.tools["ads"].vault()
        return await self.add_proxy(store.Secrets(await vault.sealer(), WHO), n)

    async def add_proxy(self, secrets: store.Secrets, n: int) -> str:
        told: dict[str, Any] = {
            "host": "proxy.example.com",
            "port": 8080 + n,
            "name": f"proxy-br-{n}",
            "username": "user",
            "password": Secret(f"CANARY-password-{n}"),
        }
        return await self.app.write(lambda tx: store.add_proxy(tx, secrets, **told))

    @property
    def clock(self) -> FakeClock:
        assert isinstance(self.app.clock, FakeClock)
        return self.app.clock

    async def drain(self) -> None:
        await drain(self.app)

    async def add(self, n: int = 1) -> list[str]:
        wanted = NewMission(date(2025, 1, 15), date(2025, 1, 15), MediaType.VIDEO, ("pt",))
        return await self.app.write(lambda tx: store.add_missions(tx, [wanted] * n, actor=WHO))

    async def queue(self, *missions: str) -> None:
        await self.app.write(lambda tx: store.queue_missions(tx, missions, actor=WHO))

    async def start(self) -> None:
        await self.app.write(lambda tx: store.start(tx, actor=WHO))

    async def stop(self) -> None:
        await self.app.write(lambda tx: store.stop(tx, actor=WHO))

    async def columns(self, view: str) -> list[str]:
        """In their order."""
        sql = (
            "SELECT name FROM pragma_table_info(:view) ORDER BY cid"
            if self.app.url.startswith("sqlite")
            else "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = 'retoma' AND table_name = :view ORDER BY ordinal_position"
        )
        return [name for (name,) in await self.rows(sql, view=view)]

    async def indices(self) -> set[str]:
        sql = (
            "SELECT name FROM sqlite_master WHERE type = 'index'"
            if self.app.url.startswith("sqlite")
            else "SELECT indexname FROM pg_indexes WHERE schemaname = 'retoma'"
        )
        return {name for (name,) in await self.rows(sql)}

    async def cancel(self, mission: str) -> str:
        return await self.app.write(lambda tx: store.cancel_mission(tx, mission, actor=WHO))

    async def rows(self, sql: str, **params: Any) -> Sequence[Any]:
        """As somebody asks who has our schema in their search_path."""
        database = await self.app.database()
        return await database.read(lambda tx: tx.all(adhoc(sql), **params))

    async def change(self, sql: str) -> None:
        database = await self.app.database()
        await database.write(lambda tx: tx.run(adhoc(sql)), verb="test")

    async def mission(self, mission: str) -> dict[str, Any]:
        names = (
            "status, checkpoint, worker_id, worker_job_id, worker_data_url, proxy_used,"
            " writer_job_id, ads_count, error_code, error_message, retry_count"
        )
        [row] = await self.rows(f"SELECT {names} FROM missions WHERE id = :id", id=mission)  # noqa: S608
        return dict(zip(names.replace(" ", "").split(","), row, strict=True))

    async def events(self, mission: str) -> list[str]:
        return [
            event
            for (event,) in await self.rows(
                "SELECT event FROM mission_logs WHERE mission_id = :id ORDER BY timestamp, id",
                id=mission,
            )
        ]


@asynccontextmanager
async def world(
    url: str,
    folder: Path,
    *,
    workers: Sequence[Any] = (),
    writers: Sequence[FakeWriter] = (),
    proxies: int = 1,
    real_time: bool = False,
    network: Any = None,
) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        clock = None if real_time else FakeClock()
        app = await stack.enter_async_context(Retoma(url, clock=clock))
        near = frozenset({"127.0.0.1"})
        out = await stack.enter_async_context(Outbound(private=near, network=network))
        tools = Tools(app, out, key_file=folder / "key")
        app.install(APP, tools)
        secrets = store.Secrets(await (await tools.vault()).sealer(), WHO)
        made = World(app, {}, {}, [])
        for n, worker in enumerate(workers, start=1):
            server = await stack.enter_async_context(serving(worker))
            made.workers[await made.add_worker(secrets, f"W{n}", server)] = worker
        for n, writer in enumerate(writers, start=1):
            server = await stack.enter_async_context(serving(writer))
            made.writers[await made.add_writer(secrets, f"writer {n}", server)] = writer
        for n in range(1, proxies + 1):
            made.proxies.append(await made.add_proxy(secrets, n))
        yield made
