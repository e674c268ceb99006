"""The three stories of the orchestrator against services that do what the test says."""

import pytest

from retoma import State
from retoma.apps.ads import store
from retoma.apps.ads.model import ERRORS
from retoma.db.rows import read_json
from retoma.testing import crash_at
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter, told
from tests.outbound.fakes import Asked

# §10.2, line by line, with the progress of §10.1.
SEQUENCE = [
    "mission_queued",
    "session_started",
    "session_ready",
    "mission_assigned",
    "scrape_started",
    "scrape_progress",
    "scrape_completed",
    "writer_started",
    "writer_progress",
    "writer_completed",
    "mission_completed",
]


async def under_way(house: World, n: int = 1) -> list[str]:
    """So many missions, queued; the orchestrator works."""
    missions = await house.add(n)
    await house.queue(*missions)
    await house.start()
    return missions


async def test_m11_a_mission_goes_the_way_of_the_document(database_url, tmp_path):
    worker, writer = FakeWorker(), FakeWriter()
    async with world(database_url, tmp_path, workers=[worker], writers=[writer]) as house:
        [mission] = await house.add()
        assert (await house.mission(mission))["status"] == "novo"
        await house.queue(mission)
        await house.start()
        await house.drain()

        assert await house.events(mission) == SEQUENCE
        row = await house.mission(mission)
        assert row["status"] == "completed"
        assert row["checkpoint"] == "finalizado"
        assert (row["ads_count"], row["retry_count"]) == (1500, 0)
        assert [verb for verb, _ in worker.log] == ["session", "scrape", "delete"]
        assert worker.log[0][1] == {
            "force_refresh": True,
            "proxy": {
                "server": "proxy.example.com:8081",
                "username": "user",
                "password": "CANARY-password-1",
            },
        }
        [(_, body)] = writer.log
        assert body["source"]["url"] == row["worker_data_url"]
        [(written,)] = await house.rows(
            "SELECT details FROM ads_logs WHERE event = 'writer_completed'"
        )
        assert read_json(written)["duration_ms"] >= 30_000  # one poll
        assert await idle(house)


async def idle(house: World) -> bool:
    """M10: nothing is held by anybody; a hold of a job that has ended is over."""
    held = await house.rows(
        "SELECT count(*) FROM pool_items i JOIN jobs j ON j.id = i.job"
        " WHERE i.scope = 'release' OR j.state IN ('waiting', 'running', 'parked')"
    )
    busy = await house.rows(
        "SELECT count(*) FROM proxies WHERE in_use_by_worker_id IS NOT NULL"
    )
    states = await house.rows("SELECT DISTINCT status FROM workers")
    assert not any(worker.open for worker in house.workers.values())
    return held[0][0] == busy[0][0] == 0 and {s for (s,) in states} <= {"idle", "error"}


async def test_m8_a_session_has_five_missions_and_the_next_goes_by_another_proxy(
    database_url, tmp_path
):
    worker = FakeWorker()
    async with world(
        database_url, tmp_path, workers=[worker], writers=[FakeWriter()], proxies=2
    ) as house:
        await under_way(house, 7)
        await house.drain()

        verbs = [verb for verb, _ in worker.log]
        assert verbs == [
            "session",
            *["scrape"] * 5,
            "delete",
            "session",
            *["scrape"] * 2,
            "delete",
        ]
        first, second = (
            body["proxy"]["server"] for verb, body in worker.log if verb == "session"
        )
        assert first != second
        assert {"completed"} == {s for (s,) in await house.rows("SELECT status FROM missions")}
        assert await idle(house)


async def test_m2_nothing_found_is_a_mission_completed(database_url, tmp_path):
    worker = FakeWorker(scrape=["running", "empty"])
    writer = FakeWriter()
    async with world(database_url, tmp_path, workers=[worker], writers=[writer]) as house:
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert (row["status"], row["ads_count"], writer.log) == ("completed", 0, [])
        assert "scrape_empty" in await house.events(mission)


async def test_how_long_a_scrape_took_leaves_out_the_one_that_failed_and_the_mission_counts_from_the_queue(
    database_url, tmp_path
):
    """§10.2: 975,000 ms from `mission_queued` to `mission_completed`."""
    worker = FakeWorker(scrape=[*["running"] * 10, "failed"])  # five minutes of polls

    def better(asked: Asked) -> None:
        if worker.jobs and (asked.method, asked.target) == ("POST", "/scrape"):
            worker.scrape = ["running", "completed"]

    worker.refuse = better
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await house.add()
        await house.queue(mission)
        house.clock.advance(3600)
        await house.start()
        await house.drain()

        took = dict(
            await house.rows(
                "SELECT event, coalesce(details ->> 'duration_ms', details ->> 'total_duration_ms')"
                " FROM ads_logs WHERE event IN ('scrape_completed', 'mission_completed')"
            )
        )
        assert (await house.mission(mission))["retry_count"] == 1
        assert 30_000 <= int(took["scrape_completed"]) < 300_000
        assert int(took["mission_completed"]) > 3_600_000 + 300_000


async def test_progress_is_told_where_it_changes_and_at_most_once_a_minute(
    database_url, tmp_path
):
    polls = [
        {"status": "running", "ads_count": 10 * (n // 2), "progress_pct": None}
        for n in range(12)
    ]
    worker = FakeWorker(scrape=[*polls, "completed"])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        await house.drain()

        told_of = await house.rows(
            "SELECT details FROM ads_logs WHERE event = 'scrape_progress' ORDER BY id"
        )
        counts = [read_json(details)["ads_count"] for (details,) in told_of]
        assert counts == sorted(set(counts))
        assert 3 <= len(counts) <= 6, counts  # twelve polls of half a minute
        assert read_json(told_of[0][0])["progress_pct"] is None
        assert (await house.mission(mission))["status"] == "completed"


async def test_e20_jobs_that_a_mission_names_are_kept(database_url, tmp_path):
    async with world(
        database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]
    ) as house:
        await under_way(house)
        await house.drain()
        kinds = {store.SESSION, store.EXTRACTION, store.STORAGE}
        before = [each for each in await house.app.jobs() if each.kind in kinds]
        house.clock.advance(10 * 86_400)

        await house.app.retention.run_once(done="1d", dead="1d", events="2d")

        assert kinds == {job.kind for job in before}
        assert before == [each for each in await house.app.jobs() if each.kind in kinds]


# — errors —


@pytest.mark.parametrize(
    ("says", "code"),
    [("failed", "ERROR200"), ("cancelled", "ERROR201"), ("paused", "ERROR200")],
)
async def test_m4_a_scrape_is_tried_again_and_then_has_failed(
    database_url, tmp_path, says, code
):
    worker = FakeWorker(scrape=[says])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert (row["status"], row["error_code"], row["retry_count"]) == (
            "failed",
            "ERROR203",
            2,
        )
        assert row["error_message"].startswith(code)  # the last real cause is kept
        assert [verb for verb, _ in worker.log].count("scrape") == 3
        events = await house.events(mission)
        assert events.count("scrape_failed") == 3
        assert events.count("retry_triggered") == 2
        assert events[-1] == "mission_failed"
        assert await idle(house)


@pytest.mark.parametrize(
    ("says", "code"),
    [("stuck", "ERROR102"), ("disconnected", "ERROR103"), ("warming_up", "ERROR101")],
)
async def test_a_session_that_fails_is_ended_and_the_next_one_goes_by_another_proxy(
    database_url, tmp_path, says, code
):
    worker = FakeWorker(session=["connecting", says])

    def mend(asked: Asked) -> None:
        if asked.method == "DELETE":
            worker.session = ["ready"]

    worker.refuse = mend
    async with world(
        database_url, tmp_path, workers=[worker], writers=[FakeWriter()], proxies=2
    ) as house:
        [mission] = await under_way(house)
        await house.drain()

        assert (await house.mission(mission))["status"] == "completed"
        logged = await house.rows("SELECT details FROM ads_logs WHERE event = 'session_failed'")
        assert code in str(logged)
        [(failures,)] = await house.rows("SELECT sum(fail_count) FROM proxies")
        assert failures == 1
        assert "proxy_rotated" in await house.events(mission)
        assert await idle(house)


async def test_a_session_that_was_refused_is_not_asked_for_again(database_url, tmp_path):
    """Nor while its end cannot be seen: it is the next one that goes by another proxy."""
    worker, refusals = FakeWorker(), iter(range(4))

    def refuse(asked: Asked) -> bytes | None:
        asks = asked.method in ("POST", "DELETE") and asked.target == "/session"
        return (
            told(503, {"error": "later"}) if asks and next(refusals, None) is not None else None
        )

    worker.refuse = refuse
    async with world(
        database_url, tmp_path, workers=[worker], writers=[FakeWriter()], proxies=2
    ) as house:
        [mission] = await under_way(house)
        await house.drain()

        assert (await house.mission(mission))["status"] == "completed"
        assert [verb for verb, _ in worker.log] == ["delete", "session", "scrape", "delete"]
        assert await idle(house)


async def test_the_writer_is_tried_once_more_and_then_the_mission_has_failed(
    database_url, tmp_path
):
    writer = FakeWriter(statuses=["failed"])
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert (row["status"], row["error_code"]) == ("failed", "ERROR304")
        keys = [body["job_id"] for _, body in writer.log]
        assert (len(keys), len(set(keys))) == (2, 2), "another key, once the first has failed"


async def test_ads_that_mostly_do_not_fit_wait_for_a_person(database_url, tmp_path):
    writer = FakeWriter(statuses=["partial"], failed=400)
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        await under_way(house)
        await house.drain()

        [job] = await house.app.jobs(kind=store.STORAGE)
        assert (job.state, job.reason) == (State.PARKED, "config")


async def test_row_19_a_hostile_remote_id_is_fetched_from_nowhere(database_url, tmp_path):
    worker = FakeWorker()

    def hostile(asked: Asked) -> bytes | None:
        if (asked.method, asked.target) == ("POST", "/scrape"):
            worker.log.append(("scrape", None))
            return told(200, {"job_id": "../../x"})
        return None

    worker.refuse = hostile
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        await house.drain()

        row = await house.mission(mission)
        assert (row["status"], row["error_code"]) == ("failed", "ERROR203")
        assert "invalid_remote_id" in row["error_message"]
        assert row["worker_data_url"] is None


def test_every_code_of_the_document_is_in_the_table():
    wanted = [*range(100, 105), *range(200, 204), *range(300, 305), 400, 401, 500, 501, 502]
    assert sorted(ERRORS) == [f"ERROR{n}" for n in wanted]


# — deaths —

POINTS = (
    *("effect.before_commit", "effect.after_commit"),
    *("remote.before_send", "remote.after_send"),
    *("save.before_commit", "save.after_commit"),
    *("settle.before_commit", "settle.after_commit"),
)


@pytest.mark.parametrize(
    "pass_", [1, 3, *(pytest.param(n, marks=pytest.mark.soak) for n in (2, 4))]
)
@pytest.mark.parametrize("point", POINTS)
async def test_m1_m7_a_failure_anywhere_doubles_nothing(database_url, tmp_path, point, pass_):
    worker, writer = FakeWorker(), FakeWriter()
    async with world(database_url, tmp_path, workers=[worker], writers=[writer]) as house:
        missions = await under_way(house, 2)
        with crash_at(point, "exception", pass_):
            await house.drain()

        for mission in missions:
            assert (await house.mission(mission))["status"] == "completed"
        assert [verb for verb, _ in worker.log].count("scrape") == 2
        assert len({body["job_id"] for _, body in writer.log}) == 2
        assert await idle(house)
        assert WHO


async def test_m1_nothing_is_sent_into_a_session_that_has_ended(database_url, tmp_path):
    """Somebody else's session may have begun at that worker meanwhile."""
    worker, writer = FakeWorker(keys=False), FakeWriter()
    async with world(database_url, tmp_path, workers=[worker], writers=[writer]) as house:
        await house.app.knobs.set("ads.timeout_job", 60, actor=WHO)
        [mission] = await under_way(house)
        with crash_at("remote.after_send", "exception", 1):
            await house.drain()

        assert (await house.mission(mission))["status"] == "completed"
        assert [verb for verb, _ in worker.log] == 2 * ["session", "scrape", "delete"]
