"""Who looks after missions: an instance that has the application, beside one that has not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from retoma import State
from retoma.apps.ads import store
from retoma.engine.handlers.kinds import Kinds
from tests.apps.ads.aids import World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter
from tests.engine.aids import eventually

LEASE = 1_000_000.0  # seconds: the clock is moved faster than anybody beats
HOLDER = "SELECT r.name FROM duties d JOIN runners r ON r.boot = d.boot WHERE d.name = :name"


@asynccontextmanager
async def server_and_runner(house: World) -> AsyncIterator[None]:
    """As `retoma serve` and `retoma runner` stand beside each other; the server was there first."""

    async def holds(name: str, task: str) -> bool:
        return await house.rows(HOLDER, name=task) == [(name,)]

    server = asyncio.create_task(house.app.run(kinds=Kinds(), name="server", lease=LEASE))
    await eventually(lambda: holds("server", "alerts"))
    runner = asyncio.create_task(house.app.run(name="runner", lease=LEASE))
    try:
        await eventually(lambda: holds("runner", "application.ads"))
        assert await house.rows(HOLDER, name="alerts") == [("server",)]
        yield
    finally:
        house.app.stop()
        await asyncio.gather(server, runner)


async def after(house: World, sql: str) -> None:
    """Let time pass until there is such a row."""

    async def found() -> bool:
        house.clock.advance(2)
        await asyncio.sleep(0.03)  # who has woken gets to work
        return bool(await house.rows(sql))

    await eventually(found)


async def test_a_resumed_mission_goes_on_while_the_server_holds_the_alerts(
    database_url, tmp_path
):
    worker = FakeWorker(scrape=[{"status": "failed", "error_code": "ERROR401"}])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await house.add()
        await house.queue(mission)
        await house.start()
        await house.app.knobs.set("ads.timeout_session", 3600)
        await house.drain()
        worker.scrape = ["completed"]
        [parked] = await house.app.jobs(kind=store.EXTRACTION, state=State.PARKED)
        async with server_and_runner(house):
            await house.app.resume(parked.id)

            await after(house, "SELECT 1 FROM missions WHERE status = 'completed'")


async def test_workers_in_error_are_an_alert_while_the_server_holds_the_alerts(
    database_url, tmp_path
):
    async with world(database_url, tmp_path, workers=[FakeWorker()], proxies=0) as house:
        [mission] = await house.add()
        await house.queue(mission)
        await house.start()
        async with server_and_runner(house):
            await house.change("UPDATE ads_workers SET status = 'error'")
            await after(
                house,
                "SELECT 1 FROM alerts WHERE subject = 'ads.workers_in_error' AND closed_at IS NULL",
            )
