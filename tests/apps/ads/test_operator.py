"""What an operator does to missions that are under way: stop, cancel, let go on, send again."""

import asyncio
from dataclasses import dataclass
from typing import Any, cast

import pytest

from retoma import State
from retoma.apps.ads import store
from retoma.db.rows import read_json
from retoma.engine.ops.alerts import Alerts, application_chores
from retoma.engine.ops.leader_tasks import Fence
from retoma.engine.rules.errors import IllegalMove
from retoma.engine.store.alerts import Rule
from retoma.words import Language, restored, tell
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter
from tests.engine.aids import eventually
from tests.outbound.fakes import Asked


@dataclass
class Telling(FakeWriter):
    """Tells of what it could not store."""

    def _status(self, job: str) -> dict[str, Any]:
        items = [{"index": 42, "data": {"id": "ad42"}, "error": "duplicate key"}]
        return {**super()._status(job), "failed_items": items if self.failed else []}


@dataclass
class Picky(FakeWorker):
    """Gets on with every proxy but one."""

    def __call__(self, asked: Asked) -> bytes:
        if (asked.method, asked.target) == ("POST", "/session"):
            bad = b":8081" in asked.body
            self.session = ["stuck" if bad else "ready"]
        return super().__call__(asked)


async def scraping(house: World, mission: str) -> bool:
    return (await house.mission(mission))["worker_job_id"] is not None


async def test_m5_m10_stopped_now_what_runs_is_canceled_and_what_waits_stays(
    database_url, tmp_path
):
    """ "Parar agora"; and "Iniciar" takes up what was left in the queue."""
    worker = FakeWorker(scrape=["running"])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        first, second = await house.add(2)
        await house.queue(first, second)
        await house.start()
        working = asyncio.create_task(house.drain())
        await eventually(lambda: scraping(house, first))

        stopped = await house.app.write(lambda tx: store.stop_now(tx, actor=WHO))
        await working
        assert stopped == [first]
        assert [verb for verb, _ in worker.log] == ["session", "scrape", "cancel", "delete"]
        assert (await house.mission(first))["status"] == "canceled"
        assert (await house.mission(second))["status"] == "queued"
        assert "retry_triggered" not in await house.events(first)

        worker.scrape = ["completed"]
        await house.start()
        await house.drain()
        assert (await house.mission(second))["status"] == "completed"
        assert not worker.open


async def test_m6_refused_ads_are_kept_and_can_be_sent_again(database_url, tmp_path):
    """H-64: completed with a count, never silently. Too many are a person's, who may let it go on
    or cancel it."""
    writer = Telling(statuses=["partial"])
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        mission, other = await house.add(2)
        await house.queue(mission)
        await house.start()
        await house.drain()
        assert (await house.mission(mission))["status"] == "completed"
        kept = await house.rows("SELECT mission, place, error FROM ads_failed_items")
        assert kept == [(mission, 0, "duplicate key")]

        writer.failed = 0
        await house.app.write(lambda tx: store.resend_failed(tx, mission, actor=WHO))
        await house.drain()
        assert (await house.mission(mission))["status"] == "completed"
        assert await house.rows("SELECT mission FROM ads_failed_items") == []
        assert len({body["job_id"] for _, body in writer.log}) == 2
        with pytest.raises(IllegalMove, match="no refused ads"):
            await house.app.write(lambda tx: store.resend_failed(tx, mission, actor=WHO))

        writer.failed = 1000
        await house.queue(other)
        await house.drain()
        assert (await house.mission(other))["error_code"] == "ERROR303"
        [parked] = await house.app.jobs(kind=store.STORAGE, state=State.PARKED)
        await house.app.resume(parked.id)
        await house.drain()  # sent again, refused again: told again, and nothing spent
        assert (await house.events(other)).count("writer_failed") == 2
        assert (await house.mission(other))["retry_count"] == 0
        assert len({body["job_id"] for _, body in writer.log}) == 4

        assert await house.cancel(other) == "canceled"
        assert await house.app.jobs(kind=store.STORAGE, state=State.PARKED) == []
        assert "retry_triggered" not in await house.events(other)


async def test_m4_who_waits_for_a_proxy_for_long_is_told_of_and_so_is_every_worker_in_error(
    database_url, tmp_path
):
    """DESIGN §7: ERROR501 waits, is told of after 15 minutes, and ends nothing."""
    async with world(
        database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()], proxies=0
    ) as house:
        [mission] = await house.add()
        await house.queue(mission)
        await house.start()
        await house.drain()
        assert await troubles(house) == []

        house.clock.advance(901)
        assert await troubles(house) == ["no_proxy"]
        assert await alerts_of(house) == ["ads.no_proxy"]
        [(said,)] = await house.rows("SELECT details FROM alerts WHERE closed_at IS NULL")
        text = restored(read_json(said))
        assert text == "no proxy has been available for 15 minutes (ERROR501)"
        assert tell(text, Language.PT_BR) == "nenhum proxy disponível há 15 minutos (ERROR501)"
        await Alerts("UTC").chore(cast("Fence", await house.app.database()))
        assert await open_alerts(house) == ["ads.no_proxy"], "who cannot look closes nothing"
        await house.change("UPDATE ads_workers SET status = 'error'")
        assert await troubles(house) == ["no_proxy", "workers_in_error"]
        await house.change("UPDATE ads_workers SET status = 'idle'")

        await house.new_proxy(1)
        await house.drain()
        assert await troubles(house) == []
        assert await alerts_of(house) == []
        assert (await house.mission(mission))["status"] == "completed"
        told = await house.rows(
            "SELECT verb FROM audit WHERE verb IN ('ads.no_proxy', 'ads.proxy_found') ORDER BY id"
        )
        assert told == [("ads.no_proxy",), ("ads.proxy_found",)]


async def test_m5_a_parked_extraction_that_is_let_go_on_gets_a_session_of_its_own(
    database_url, tmp_path
):
    """ERROR401 waits for a person; the verb of every job lets it go on, and nobody else acts."""
    worker = FakeWorker(scrape=[{"status": "failed", "error_code": "ERROR401"}])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await house.add()
        await house.queue(mission)
        await house.start()
        await house.drain()
        open_ = "SELECT count(*) FROM ads_sessions WHERE ended_at IS NULL"
        assert await house.rows(open_) == [(0,)]
        [parked] = await house.app.jobs(kind=store.EXTRACTION, state=State.PARKED)
        await looked(house)
        assert await house.rows(open_) == [(0,)], "what is parked wants no session"

        worker.scrape = ["completed"]
        await house.app.resume(parked.id)
        assert await house.rows(open_) == [(0,)]
        for _ in range(2):  # by two runners at once as well
            await looked(house)
        assert await house.rows(open_) == [(1,)]
        await house.drain()
        assert (await house.mission(mission))["status"] == "completed"


async def looked(house: World) -> None:
    """As whoever holds the leader task of the application looks, every 30 seconds."""
    chores = application_chores(house.app.kinds)
    await chores["application.ads"](cast("Fence", await house.app.database()))


async def troubles(house: World) -> list[str]:
    database = await house.app.database()
    return sorted(await database.read(house.app.kinds.watches["ads"]))


async def alerts_of(house: World) -> list[str]:
    """Which alerts of applications are open, after a look."""
    await looked(house)
    return await open_alerts(house)


async def open_alerts(house: World) -> list[str]:
    return [
        each.subject for each in await house.app.alerts.list() if each.rule is Rule.APPLICATION
    ]
