"""A runner is drained over the API: heard at once by the bell, and by the next beat where it is lost (E29)."""

import asyncio
import threading

from retoma import Context
from retoma.engine import store
from retoma.engine.ports import Clock
from retoma.engine.rules.states import State
from retoma.engine.run.heartbeat import Heartbeat, HeartbeatThread
from retoma.engine.testing import FakeClock
from tests.engine.aids import boot, eventually, rows, running
from tests.web.aids import World, code_of, world

SLOW = {"lease": 3600.0, "beat": 600.0}  # no beat comes while a test waits


async def the_runner(house: World) -> dict[str, str]:
    async def booted() -> list[dict[str, str]]:
        found: list[dict[str, str]] = (await house.viewer.get("/api/runners")).json()
        return found

    [seen] = await eventually(booted)
    return seen


async def test_e29_a_drained_runner_ends_its_work_and_leaves_and_who_wished_it_is_known(
    database_url,
):
    async with world(database_url) as house:
        gate, begun = asyncio.Event(), asyncio.Event()

        @house.app.job
        async def slow(ctx: Context) -> None:
            begun.set()
            await gate.wait()

        await house.app.submit("slow")
        async with running(house.app, grace=30.0, **SLOW) as run:
            await begun.wait()
            await house.app.submit("count", 1)
            path = f"/api/runners/{(await the_runner(house))['boot']}/drain"

            first = await house.admin.post(path)
            await eventually(lambda: in_state(house, "leaving"))
            again = await house.admin.post(path)
            left = (await house.viewer.get("/api/runners")).json()[0]
            gate.set()
            await run
            gone = await house.admin.post(path)

        assert (200, "alive") == (first.status_code, first.json()["state"])
        assert (200, "leaving") == (again.status_code, again.json()["state"])
        assert left["drain_at"] is not None
        assert (409, "illegal_move") == code_of(gone)
        assert State.DONE == (await house.app.get(1)).state
        told = (await house.admin.get("/api/events?verb=runner.drain_requested")).json()
        assert ["RETOMA_API_KEY"] == [each["actor"] for each in told["items"]]


async def in_state(house: World, state: str) -> bool:
    return state == (await the_runner(house))["state"]


async def test_who_was_drained_begins_no_new_life_although_its_boot_is_lost_meanwhile(
    database_url,
):
    async with world(database_url) as house:
        begun = asyncio.Event()

        @house.app.job
        async def endless(ctx: Context) -> None:
            begun.set()
            await asyncio.Event().wait()

        await house.app.submit("endless")
        async with running(house.app, grace=60.0, lease=60.0, beat=0.1) as run:
            await begun.wait()
            me = (await the_runner(house))["boot"]
            await house.app.runners.drain(me)
            await eventually(lambda: in_state(house, "leaving"))
            await (await house.app.database()).write(
                lambda tx: store.move_runner(tx, me, "lost", actor="test"), verb="test"
            )
            async with asyncio.timeout(60):
                await run

        assert [me] == [each.boot for each in await house.app.runners.list()]


async def test_a_bell_that_is_lost_is_made_up_for_by_the_beat(database_url):
    async with world(database_url) as house:
        database = await house.app.database()
        await boot(database, "me")
        told: list[str] = []
        heartbeat = Heartbeat(
            database,
            "me",
            FakeClock(),
            lease=60.0,
            beat=10.0,
            on_wake_up=lambda _: None,
            on_lost=lambda: told.append("lost"),
            on_drain=lambda: told.append("drain"),
        )

        assert heartbeat.beat()
        assert [] == told
        await house.app.runners.drain("me", actor="Olga")
        assert [True, True] == [heartbeat.beat(), heartbeat.beat()]

        assert ["drain"] == told  # once, however often it is heard
        await database.write(
            lambda tx: store.move_runner(tx, "me", "lost", actor="test"), verb="test"
        )
        assert not heartbeat.beat()


async def test_e29_who_was_told_to_leave_before_it_listened_hears_of_it(database_url):
    async with world(database_url) as house:
        database = await house.app.database()
        await boot(database, "me")
        await house.app.runners.drain("me", actor="Olga")
        heard, died = threading.Event(), list[BaseException]()
        heartbeat = Heartbeat(
            database,
            "me",
            Clock(),
            **SLOW,
            on_wake_up=lambda _: None,
            on_lost=lambda: None,
            on_drain=heard.set,
        )

        thread = HeartbeatThread(heartbeat, database, on_death=died.append)
        thread.start()
        told = await asyncio.to_thread(heard.wait, 20)
        thread.stop()

        assert told
        assert [] == died


async def test_what_wishes_nothing_is_no_boot(database_url):
    async with world(database_url) as house:
        for wrong in ("%00", "a%20b", "x" * 201, "é"):
            answer = await house.admin.post(f"/api/runners/{wrong}/drain")
            assert code_of(answer)[0] in (404, 422), wrong
        assert [] == await rows(
            await house.app.database(), "SELECT 1 FROM audit WHERE verb LIKE 'runner.drain%'"
        )
