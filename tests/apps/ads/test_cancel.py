"""Cancel in every state a mission can be in (§5.4), and what is never done to it after that (M5)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from retoma.apps.ads import store
from retoma.db.rows import read_json
from retoma.engine.rules.errors import IllegalMove
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter, told
from tests.apps.ads.test_steps import idle, under_way
from tests.engine.aids import eventually
from tests.outbound.fakes import Asked

NEVER_AFTER = {"retry_triggered", "mission_assigned", "scrape_started", "writer_started"}
LONG = 86_400  # seconds: no deadline ends what a test wants to end itself


async def canceled_for_good(house: World, mission: str, checkpoint: str) -> list[str]:
    """M5: told once, by whom and where it was, and tried by nobody after that; what came after."""
    assert (await house.mission(mission))["status"] == "canceled"
    [(details,)] = await house.rows(
        "SELECT details FROM ads_logs WHERE mission = :id AND event = 'mission_canceled'",
        id=mission,
    )
    assert read_json(details) == {"canceled_by": WHO, "previous_checkpoint": checkpoint}
    [(by, ended)] = await house.rows(
        "SELECT canceled_by, finished_at IS NOT NULL FROM ads_missions WHERE id = :id",
        id=mission,
    )
    assert (by, bool(ended)) == (WHO, True)
    events = await house.events(mission)
    after = events[events.index("mission_canceled") + 1 :]
    assert not NEVER_AFTER & {*after}
    return after


@asynccontextmanager
async def working_until(
    house: World, fact: Callable[[], Awaitable[Any]]
) -> AsyncIterator[None]:
    """The orchestrator is at work, and this has come about; at the end it has nothing left."""
    for name in ("timeout_job", "timeout_writer", "stall_writer"):
        await house.app.knobs.set(f"ads.{name}", LONG, actor=WHO)
    working = asyncio.create_task(house.drain())
    try:
        await eventually(fact)
        yield
        await working
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def at(house: World, mission: str, **wanted: Any) -> bool:
    row = await house.mission(mission)
    return all(row[name] == value for name, value in wanted.items())


async def named(house: World, mission: str, column: str) -> bool:
    return (await house.mission(mission))[column] is not None


async def noted(house: World, kind: str, note: str) -> bool:
    rows = await house.rows(
        "SELECT note FROM jobs WHERE kind = :kind AND state IN ('waiting', 'running')",
        kind=kind,
    )
    return any(note in (said or "") for (said,) in rows)


async def test_m5_where_nobody_is_at_it_a_mission_is_canceled_at_once_or_not_at_all(
    database_url, tmp_path
):
    """novo and what has ended: refused, nothing changed. queued: at once. canceled: as it is."""
    worker = FakeWorker()
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        novo, queued, failed, completed = await house.add(4)
        with pytest.raises(IllegalMove, match="novo"):
            await house.cancel(novo)
        assert await house.events(novo) == []

        await house.queue(queued)
        assert await house.cancel(queued) == "canceled"
        assert await house.cancel(queued) == "canceled"
        assert await canceled_for_good(house, queued, "atribuido") == []

        worker.scrape = [{"status": "failed"}]
        await house.app.knobs.set("ads.max_retries", 0, actor=WHO)
        await house.queue(failed)
        await house.start()
        await house.drain()
        worker.scrape = ["completed"]
        await house.queue(completed)
        await house.drain()
        assert await house.events(queued) == ["mission_queued", "mission_canceled"]
        for mission, status in ((failed, "failed"), (completed, "completed")):
            before = await house.mission(mission), await house.events(mission)
            with pytest.raises(IllegalMove, match=status):
                await house.cancel(mission)
            assert before == (await house.mission(mission), await house.events(mission))
            assert before[0]["status"] == status


async def test_m5_assigned_and_not_yet_scraped_it_is_canceled_at_once(database_url, tmp_path):
    worker = FakeWorker()

    def busy(asked: Asked) -> bytes | None:
        return told(503, {}) if (asked.method, asked.target) == ("POST", "/scrape") else None

    worker.refuse = busy
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        told_of = {"status": "running", "worker_job_id": None, "error_code": "ERROR502"}
        async with working_until(house, lambda: at(house, mission, **told_of)):
            await house.cancel(mission)
        await canceled_for_good(house, mission, "extracao")
        assert [verb for verb, _ in worker.log if verb in ("scrape", "cancel")] == []
        assert await idle(house)


async def test_m5_in_the_workers_hands_it_is_stopped_there_before_it_is_canceled(
    database_url, tmp_path
):
    worker = FakeWorker(scrape=["running"])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        async with working_until(house, lambda: named(house, mission, "worker_job_id")):
            assert await house.cancel(mission) in ("running", "canceled")
        assert {*await canceled_for_good(house, mission, "extracao")} <= {"session_terminated"}
        assert [verb for verb, _ in worker.log] == ["session", "scrape", "cancel", "delete"]
        assert await idle(house)


@pytest.mark.parametrize("answers", [200, 503])
async def test_m5_m10_a_stop_that_is_not_confirmed_is_asked_for_again_and_all_stays_held(
    database_url, tmp_path, answers
):
    """ "Cancelamento não confirmado": of the worker and its proxy nobody gets hold meanwhile."""
    worker, deaf = FakeWorker(scrape=["running"]), [True]
    asked_to_stop: list[str] = []

    def refuse(asked: Asked) -> bytes | None:
        if not asked.target.endswith("/cancel"):
            return None
        asked_to_stop.append(asked.target)
        return told(answers, {}) if deaf[0] else None

    worker.refuse = refuse
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        mission, other = await under_way(house, 2)
        async with working_until(house, lambda: named(house, mission, "worker_job_id")):
            assert await house.cancel(mission) == "running"
            await eventually(lambda: noted(house, store.EXTRACTION, "Cancellation not confirm"))
            await eventually(lambda: more_than(asked_to_stop, 3))
            assert await house.cancel(mission) == "running"
            assert "mission_canceled" not in await house.events(mission)
            assert await house.rows(
                "SELECT w.status, w.current_mission_id, p.in_use_by_worker_id = w.id"
                " FROM workers w, proxies p"
            ) == [("scraping", mission, True)]
            assert await at(house, other, status="queued")
            deaf[0] = False
            await eventually(lambda: at(house, mission, status="canceled"))
            worker.scrape = ["completed"]
        await canceled_for_good(house, mission, "extracao")
        assert await at(house, other, status="completed")
        assert await idle(house)


async def more_than(asked: list[str], times: int) -> bool:
    return len(asked) > times


async def test_m5_m10_what_nobody_confirms_ends_with_the_word_of_a_person(
    database_url, tmp_path
):
    """ "Worker perdido: realocar": its session is declared over, and the mission is canceled."""
    worker, gone = FakeWorker(scrape=["running"]), [False]

    def refuse(_: Asked) -> bytes | None:
        return told(503, {}) if gone[0] else None

    worker.refuse = refuse
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        [id_] = house.workers
        async with working_until(house, lambda: named(house, mission, "worker_job_id")):
            gone[0] = True
            assert await house.cancel(mission) == "running"
            await house.app.knobs.set("ads.polling_session", 300, actor=WHO)
            await house.app.knobs.set("ads.polling_job", 300, actor=WHO)
            await eventually(lambda: noted(house, store.SESSION, "Cancellation not confirm"))
            held = "SELECT in_use_by_worker_id FROM proxies"
            assert await house.rows(held) == [(id_,)]
            # Only a worker that was silent for 15 minutes is waited for no longer.
            runs = await at(house, mission, status="running")
            assert runs or await house.rows("SELECT lost FROM ads_sessions") == [("ERROR502",)]
            await house.app.write(lambda tx: store.relocate(tx, id_, actor=WHO))
            gone[0] = False
        await canceled_for_good(house, mission, "extracao")
        assert await house.rows(held) == [(None,)]


async def test_m5_in_the_writers_hands_it_is_canceled_at_once_and_the_writer_followed(
    database_url, tmp_path
):
    writer = FakeWriter(statuses=["processing"])
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        [mission] = await under_way(house)
        async with working_until(house, lambda: named(house, mission, "writer_job_id")):
            assert await house.cancel(mission) == "canceled"
            assert await house.cancel(mission) == "canceled"
            writer.statuses = ["completed"]
        after = await canceled_for_good(house, mission, "armazenamento")
        assert after[-1] == "writer_completed"
        [(details,)] = await house.rows(
            "SELECT details FROM ads_logs WHERE event = 'writer_completed'"
        )
        counts = read_json(details)
        assert (counts["success_count"], counts["failed_count"]) == (1487, 13)
        assert len(writer.log) == 1


async def test_m5_a_canceled_mission_whose_ads_are_refused_waits_for_no_person(
    database_url, tmp_path
):
    """What was stored is counted, and that is its end: nobody is asked to let it go on."""
    writer = FakeWriter(statuses=["processing"], failed=1_000)
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        [mission] = await under_way(house)
        async with working_until(house, lambda: named(house, mission, "writer_job_id")):
            assert await house.cancel(mission) == "canceled"
            writer.statuses = ["completed"]
        after = await canceled_for_good(house, mission, "armazenamento")
        assert "writer_failed" in after
        assert await house.rows("SELECT state FROM jobs WHERE kind = 'ads.storage'") == [
            ("skipped",)
        ]
        assert await house.rows("SELECT success_count, failed_count FROM ads_missions") == [
            (500, 1_000)
        ]


@pytest.mark.parametrize("late", [False, True])
async def test_m5_a_writer_that_fails_a_canceled_mission_is_told_of_and_asked_no_more(
    database_url, tmp_path, late
):
    """Before one has it, it is given to none."""
    writer = FakeWriter(statuses=["processing"])
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        if late:
            await house.change("UPDATE ads_writers SET active = FALSE")
        [mission] = await under_way(house)
        fact = (
            (lambda: noted(house, store.STORAGE, "no writer is available"))
            if late
            else (lambda: named(house, mission, "writer_job_id"))
        )
        async with working_until(house, fact):
            assert await house.cancel(mission) == "canceled"
            writer.statuses = ["failed"]
            await house.change("UPDATE ads_writers SET active = TRUE")
        after = await canceled_for_good(house, mission, "armazenamento")
        assert ("writer_failed" in after, len(writer.log)) == (
            (False, 0) if late else (True, 1)
        )
