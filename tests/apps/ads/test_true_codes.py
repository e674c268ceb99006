"""Codes as the document means them: what waits, what a person sees to, what is said of the cause (§7)."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from retoma import State
from retoma.apps.ads import store
from retoma.apps.ads.model import ERRORS
from retoma.db.rows import read_json
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter, told
from tests.apps.ads.test_cancel import working_until
from tests.apps.ads.test_steps import idle, under_way
from tests.outbound.fakes import Asked

LATER = 60.0  # seconds that are asked for


def first(n: int, method: str, target: str, status: int, body: Any, **headers: str) -> Any:
    """Says so to the first of these requests."""
    left = iter(range(n))

    def refuse(asked: Asked) -> bytes | None:
        mine = (asked.method, asked.target) == (method, target)
        return told(status, body, **headers) if mine and next(left, None) is not None else None

    return refuse


async def logged(house: World, event: str) -> list[dict[str, Any]]:
    rows = await house.rows(
        "SELECT details FROM ads_logs WHERE event = :event ORDER BY id", event=event
    )
    return [read_json(details) for (details,) in rows]


@pytest.mark.parametrize("who", ["worker", "session", "writer"])
async def test_a_429_waits_as_long_as_is_asked_for_and_costs_no_try(
    database_url, tmp_path, who
):
    worker, writer = FakeWorker(), FakeWriter()
    where = {"worker": "/scrape", "session": "/session", "writer": "/process"}[who]
    refuse = first(4, "POST", where, 429, {}, retry_after=str(int(LATER)))
    (writer if who == "writer" else worker).refuse = refuse
    async with world(database_url, tmp_path, workers=[worker], writers=[writer]) as house:
        [mission] = await under_way(house)
        began = house.clock.now()
        await house.drain()

        row = await house.mission(mission)
        assert ("completed", 0) == (row["status"], row["retry_count"])
        assert house.clock.now() - began >= 4 * LATER
        assert "retry_triggered" not in await house.events(mission)
        assert await house.rows("SELECT failures FROM ads_workers") == [(0,)]
        assert await house.rows("SELECT state FROM breakers WHERE state <> 'closed'") == []
        assert await idle(house)


async def test_a_400_keeps_what_the_worker_says_of_it(database_url, tmp_path):
    worker = FakeWorker()
    worker.refuse = first(9, "POST", "/scrape", 400, {"detail": "no such filter: languages"})
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert ("failed", "ERROR500") == (row["status"], row["error_code"])
        assert "no such filter: languages" in row["error_message"]


async def test_a_session_that_is_refused_keeps_what_the_worker_says_of_it(
    database_url, tmp_path
):
    worker = FakeWorker()
    worker.refuse = first(1, "POST", "/session", 400, {"error": "proxy.server: no port"})
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        await under_way(house)
        await house.drain()

        [failed] = await logged(house, "session_failed")
        assert "proxy.server: no port" in failed["error_message"]


@pytest.mark.parametrize("status", ["stuck", "disconnected", "terminated"])
async def test_a_session_that_is_lost_says_why_and_not_its_code_twice(
    database_url, tmp_path, status
):
    @dataclass
    class Lost(FakeWorker):
        def _session(self) -> str:
            return status if self.live else super()._session()

    async with world(
        database_url, tmp_path, workers=[Lost(scrape=["running"])], writers=[FakeWriter()]
    ) as house:
        await house.app.knobs.set("ads.max_retries", 0, actor=WHO)
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert (row["status"], row["error_code"]) == ("failed", "ERROR104")
        assert status in row["error_message"]
        code = row["error_message"].partition(":")[0]
        assert row["error_message"].count(code) == 1


async def test_a_failure_of_storage_says_its_words_beside_its_code(database_url, tmp_path):
    worker = FakeWorker(
        scrape=[{"status": "failed", "error_code": "ERROR400", "error": "bucket"}]
    )
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert ("running", "ERROR400", "bucket") == (
            *(row["status"], row["error_code"], row["error_message"]),
        )
        [parked] = await house.app.jobs(kind=store.EXTRACTION, state=State.PARKED)
        worker.scrape = ["completed"]
        await house.app.resume(parked.id)
        await house.app.write(store.open_sessions)
        await house.drain()
        assert ("completed", 0) == (
            *[(await house.mission(mission))[name] for name in ("status", "retry_count")],
        )


async def test_a_paused_scrape_is_stopped_and_no_proxy_is_blamed_for_it(database_url, tmp_path):
    """§2.4.4: as failed; what is only paused would stand in the way of the next one."""
    worker = FakeWorker(scrape=["running", "paused"])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        await house.app.knobs.set("ads.max_retries", 0, actor=WHO)
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert ("failed", "ERROR203") == (row["status"], row["error_code"])
        assert "cancel" in [verb for verb, _ in worker.log]
        assert await logged(house, "session_failed") == []
        assert await house.rows("SELECT fail_count FROM proxies") == [(0,)]


@pytest.mark.parametrize("status", ["completed", "failed"])
async def test_who_sends_ads_again_invents_no_code(database_url, tmp_path, status):
    writer = FakeWriter(statuses=["partial" if status == "completed" else "failed"])
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        [mission] = await under_way(house)
        await house.drain()
        before = (await house.mission(mission))["error_code"]
        await house.app.write(lambda tx: store.resend_failed(tx, mission, actor=WHO))

        last = (await logged(house, "retry_triggered"))[-1]
        assert last["error_code"] == before == (None if status == "completed" else "ERROR304")


@dataclass
class ByProxy(FakeWorker):
    """No session gets ready by the first proxy."""

    dead: bool = False

    def __call__(self, asked: Asked) -> bytes:
        if (asked.method, asked.target) == ("POST", "/session"):
            self.dead = json.loads(asked.body)["proxy"]["server"].endswith(":8081")
        return super().__call__(asked)

    def _session(self) -> str:
        return "stuck" if self.dead and self.open else super()._session()


async def test_one_dead_proxy_lays_up_no_worker_while_others_are_free(database_url, tmp_path):
    workers = [ByProxy(), ByProxy(), ByProxy()]
    async with world(
        database_url, tmp_path, workers=workers, writers=[FakeWriter()], proxies=6
    ) as house:
        await house.app.knobs.set("ads.session_limit", 1, actor=WHO)
        await under_way(house, 12)
        await house.drain()

        failed = await logged(house, "session_failed")
        assert {each["proxy_name"] for each in failed} <= {"proxy-br-1"}
        assert len(failed) <= 2, "it is the last that is chosen while others are free"
        assert await house.rows("SELECT count(*) FROM missions WHERE status = 'completed'") == [
            (12,)
        ]
        rested = await house.rows("SELECT count(*) FROM workers WHERE status = 'error'")
        assert rested == [(0,)]
        assert await idle(house)


async def test_a_worker_that_fails_by_every_proxy_rests(database_url, tmp_path):
    worker = FakeWorker(session=["stuck"])
    async with world(
        database_url, tmp_path, workers=[worker], writers=[FakeWriter()], proxies=9
    ) as house:
        await under_way(house)

        async def resting() -> Any:
            return await house.rows("SELECT 1 FROM ads_workers WHERE rests_until IS NOT NULL")

        async with working_until(house, resting):
            worker.session = ["ready"]
        assert len(await logged(house, "session_failed")) >= 3


async def test_a_dead_extraction_that_is_tried_again_takes_its_mission_along(
    database_url, tmp_path
):
    worker = FakeWorker(scrape=["failed"])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        await house.drain()
        assert (await house.mission(mission))["status"] == "failed"
        [dead] = await house.app.jobs(kind=store.EXTRACTION, state=State.DEAD)
        worker.scrape = ["completed"]

        await house.app.retry(dead.id)

        row = await house.mission(mission)
        assert ("queued", "atribuido", None, 0) == (
            *(row["status"], row["checkpoint"], row["error_code"], row["retry_count"]),
        )
        await house.app.write(store.open_sessions)
        await house.drain()
        assert (await house.mission(mission))["status"] == "completed"
        assert (await house.events(mission)).count("mission_queued") == 2
        assert await idle(house)


async def test_a_dead_storage_that_is_tried_again_takes_its_mission_along(
    database_url, tmp_path
):
    writer = FakeWriter(statuses=["failed"])
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        [mission] = await under_way(house)
        await house.drain()
        [dead] = await house.app.jobs(kind=store.STORAGE, state=State.DEAD)
        writer.statuses = ["completed"]

        await house.app.retry(dead.id)

        row = await house.mission(mission)
        assert ("running", "armazenamento") == (row["status"], row["checkpoint"])
        assert (await logged(house, "retry_triggered"))[-1]["error_code"] == "ERROR304"
        await house.drain()
        assert (await house.mission(mission))["status"] == "completed"


@pytest.mark.parametrize(("where", "status"), [("/scrape", 401), ("/process", 422)])
async def test_a_parked_mission_says_which_answer_it_waits_for_a_person_for(
    database_url, tmp_path, where, status
):
    worker, writer = FakeWorker(), FakeWriter()
    refuse = first(1, "POST", where, status, {"detail": "x-api-key"})
    (worker if where == "/scrape" else writer).refuse = refuse
    async with world(database_url, tmp_path, workers=[worker], writers=[writer]) as house:
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert ("running", f"HTTP{status}") == (row["status"], row["error_code"])
        [parked] = await house.app.jobs(state=State.PARKED)
        await house.app.resume(parked.id)
        await house.app.write(store.open_sessions)
        await house.drain()
        row = await house.mission(mission)
        assert ("completed", None) == (row["status"], row["error_code"])


async def test_a_writer_that_has_the_ads_and_does_not_answer_is_told_of_once(
    database_url, tmp_path
):
    writer, polls = FakeWriter(), iter(range(5))

    def silent(asked: Asked) -> bytes | None:
        mine = asked.target.startswith("/status/") and next(polls, None) is not None
        return told(503, {}) if mine else None

    writer.refuse = silent
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        [mission] = await under_way(house)
        await house.drain()

        [failed] = await logged(house, "writer_failed")
        assert failed["error_code"] == "ERROR301"
        row = await house.mission(mission)
        assert ("completed", 0, None) == (
            *(row["status"], row["retry_count"], row["error_code"]),
        )


async def test_a_table_that_is_missing_at_the_writer_is_error303(database_url, tmp_path):
    """As our own writer says it: for a person, at once."""

    @dataclass
    class Schema(FakeWriter):
        def _status(self, job: str) -> dict[str, Any]:
            said = {"error_code": "target_schema", "error": "relation ads does not exist"}
            return {**super()._status(job), **said}

    writer = Schema(statuses=["failed"])
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert ("running", "ERROR303") == (row["status"], row["error_code"])
        assert "relation ads does not exist" in row["error_message"]
        assert len(writer.log) == 1
        assert ERRORS["ERROR303"].means == "Erro de schema"


async def test_what_a_mission_failed_of_is_said_in_the_words_of_the_document(
    database_url, tmp_path
):
    """No English of the engine, and no value as Python writes it."""
    worker = FakeWorker(scrape=["cancelled"])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        await house.app.knobs.set("ads.max_retries", 0, actor=WHO)
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert row["error_message"] == "ERROR201: o worker cancelou o scrape"
