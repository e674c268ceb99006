"""Workers, proxies and writers as people operate them: switched, changed, deleted, reset, given up."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from retoma.apps.ads import APP, store
from retoma.apps.ads.model import WORKER_RULES, WorkerStatus
from retoma.apps.ads.store import Sort, operate
from retoma.db.rows import read_json
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import KEY, FakeWorker, FakeWriter, told
from tests.apps.ads.test_api import asked
from tests.engine.aids import eventually, running
from tests.house.files import ROOT
from tests.house.tables import rows_of
from tests.outbound.fakes import spying
from tests.web.aids import code_of

RUNNING = {"status": "running", "progress_pct": 40}
LONG = ("ads.timeout_job", 86_400)


async def worker_of(house: World, id_: str = "WRK-000001") -> dict[str, Any]:
    names = "status, active, mission, rests_until, failures"
    [row] = await house.rows(f"SELECT {names} FROM ads_workers WHERE id = :id", id=id_)  # noqa: S608
    return dict(zip(names.split(", "), row, strict=True))


async def held(house: World) -> list[str]:
    """The proxies that somebody holds."""
    rows = await house.rows(
        "SELECT name FROM pool_items WHERE pool = 'ads.proxies' AND job IS NOT NULL ORDER BY name"
    )
    return [name for (name,) in rows]


async def audited(house: World, verb: str) -> list[tuple[str, str]]:
    """To what it was done, and by whom."""
    return list(
        await house.rows("SELECT subject, actor FROM audit WHERE verb = :verb", verb=verb)
    )


@asynccontextmanager
async def at_work(house: World, missions: int) -> AsyncIterator[list[str]]:
    """Missions in the queue, and a worker that is at the first of them."""
    await house.app.knobs.set(*LONG, actor=WHO)
    ids = await house.add(missions)
    await house.queue(*ids)
    await house.start()
    working = asyncio.create_task(house.drain())
    try:
        await eventually(lambda: _scraping(house))
        yield ids
        await working
    finally:
        working.cancel()


async def _scraping(house: World) -> bool:
    rows = await house.rows("SELECT 1 FROM missions WHERE worker_job_id IS NOT NULL")
    return bool(rows)


# — switched —


@pytest.mark.parametrize("sort", [Sort.WORKERS, Sort.PROXIES])
async def test_deactivated_it_finishes_what_runs_and_then_leaves(database_url, tmp_path, sort):
    """Nobody gets it after that: of two missions the second waits until it is active again."""
    worker = FakeWorker(scrape=[RUNNING])
    async with (
        world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house,
        asked(house, database_url) as people,
    ):
        id_ = {Sort.WORKERS: "WRK-000001", Sort.PROXIES: house.proxies[0]}[sort]
        async with at_work(house, 2) as (first, second):
            refused = await people["operator"].post(f"/api/{sort}/{id_}/deactivate")
            assert refused.status_code == 403
            for _ in range(2):  # said twice it is the same
                done = await people["admin"].post(f"/api/{sort}/{id_}/deactivate")
                assert (done.status_code, done.json()) == (200, {"ids": [id_]})
            assert (await house.mission(first))["status"] == "running"
            worker.scrape = ["completed"]
            await eventually(lambda: _ended(house))
            assert worker.open is False
            assert await held(house) == []
            statuses = [(await house.mission(each))["status"] for each in (first, second)]
            assert statuses == ["completed", "queued"]
            done = await people["admin"].post(f"/api/{sort}/activate", json={"ids": [id_]})
            assert done.status_code == 200
        await house.drain()
        assert (await house.mission(second))["status"] == "completed"
        verbs = {
            Sort.WORKERS: ("ads.worker_deactivated", "ads.worker_activated"),
            Sort.PROXIES: ("pool.switched_off", "pool.switched_on"),
        }[sort]
        for verb in verbs:
            lines = [line for line in await audited(house, verb) if line[0].endswith(id_)]
            assert [actor for _, actor in lines] == ["RETOMA_API_KEY"], (verb, lines)


async def _ended(house: World) -> bool:
    rows = await house.rows(
        "SELECT 1 FROM ads_sessions WHERE ended_at IS NULL AND proxy IS NOT NULL"
    )
    done = await house.rows("SELECT 1 FROM missions WHERE status = 'completed'")
    return not rows and bool(done)


async def test_parar_finishes_what_runs_and_leaves_the_rest_in_the_queue(
    database_url, tmp_path
):
    worker = FakeWorker(scrape=[RUNNING])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        async with at_work(house, 2) as (first, second):
            await house.stop()
            worker.scrape = ["completed"]
        assert (await house.mission(first))["status"] == "completed"
        assert (await house.mission(second))["status"] == "queued"
        assert (worker.open, await held(house)) == (False, [])
        await house.start()
        await house.drain()
        assert (await house.mission(second))["status"] == "completed"


async def test_row_18_a_worker_without_a_storage_domain_is_not_activated(
    database_url, tmp_path
):
    async with (
        world(database_url, tmp_path, proxies=0) as house,
        asked(house, database_url) as people,
    ):
        admin = people["admin"]
        body = {"name": "W", "url": "http://127.0.0.1:1", "api_key": KEY}
        for given in ({}, {"storage_domain": "127.0.0.1:9000"}):
            assert (await admin.post("/api/workers", json={**body, **given})).status_code == 201
        both = {"ids": ["WRK-000002", "WRK-000001"]}
        await admin.post("/api/workers/WRK-000002/deactivate")

        assert code_of(await admin.post("/api/workers/activate", json=both)) == (
            422,
            "bad_input",
        )
        assert [(await worker_of(house, each))["active"] for each in both["ids"]] == [0, 0]
        switch = operate.SWITCH[
            Sort.WORKERS
        ]  # also where its domain was there when it was looked at
        bare = {"id": "WRK-000001", "active": True}
        assert await house.app.write(lambda tx: tx.one(switch, **bare)) is None
        for domain in ("a/b", "u@h", "a\r\nb", ""):
            wrong = await admin.patch(
                "/api/workers/WRK-000001", json={"storage_domain": domain}
            )
            assert wrong.status_code == 422, domain
        well = await admin.patch(
            "/api/workers/WRK-000001", json={"storage_domain": "files.example.org:9000"}
        )
        assert well.json()["storage_domain"] == "files.example.org:9000"
        assert (await admin.post("/api/workers/activate", json=both)).status_code == 200
        none = await admin.patch("/api/workers/WRK-000001", json={"storage_domain": None})
        assert code_of(none) == (422, "bad_input")


async def test_a_proxy_that_is_activated_begins_anew(database_url, tmp_path):
    async with (
        world(database_url, tmp_path, proxies=2) as house,
        asked(house, database_url) as people,
    ):
        await house.change(
            "UPDATE pool_items SET state = 'off', failures = 3 WHERE pool = 'ads.proxies'"
        )
        shown = (await people["viewer"].get("/api/proxies")).json()["items"]
        assert {(each["active"], each["fail_count"]) for each in shown} == {(False, 3)}

        both = {"ids": house.proxies}
        assert (
            await people["admin"].post("/api/proxies/activate", json=both)
        ).status_code == 200
        shown = (await people["viewer"].get("/api/proxies")).json()["items"]
        assert {(each["active"], each["fail_count"]) for each in shown} == {(True, 0)}
        some = {"ids": [house.proxies[0], "PRX-999999"]}
        missing = await people["admin"].post("/api/proxies/deactivate", json=some)
        assert code_of(missing) == (404, "not_found")
        one = (await people["viewer"].get(f"/api/proxies/{house.proxies[0]}")).json()
        assert one["active"] is True


# — deleted —


async def test_only_what_nobody_uses_is_deleted_and_its_row_stays(database_url, tmp_path):
    worker, writer = FakeWorker(scrape=[RUNNING]), FakeWriter()
    async with (
        world(database_url, tmp_path, workers=[worker], writers=[writer]) as house,
        asked(house, database_url) as people,
    ):
        admin = people["admin"]
        used = {"workers": "WRK-000001", "proxies": house.proxies[0]}
        async with at_work(house, 1) as [mission]:
            for sort, id_ in used.items():
                answer = await admin.delete(f"/api/{sort}/{id_}")
                assert code_of(answer) == (409, "illegal_move"), sort
            shown = (await admin.get(f"/api/proxies/{house.proxies[0]}")).json()
            assert shown["active"] is True  # nothing was changed
            worker.scrape = ["completed"]
        for sort, id_ in {**used, "writers": "WRT-000001"}.items():
            answer = await admin.delete(f"/api/{sort}/{id_}")
            assert (answer.status_code, answer.json()) == (200, {"ids": [id_]}), answer.text
            assert (await admin.get(f"/api/{sort}")).json()["items"] == []
            assert (await admin.delete(f"/api/{sort}/{id_}")).status_code == 404
            assert len(await house.rows(f"SELECT id FROM ads_{sort}")) == 1  # noqa: S608
            assert await audited(house, f"ads.{Sort(sort).one}_deleted")
        assert (await house.mission(mission))["proxy_used"] == "proxy-br-1"
        left = await house.rows("SELECT count(*) FROM secrets")
        assert left[0][0] == 0
        again = {"host": "proxy.example.com", "port": 8081, "name": "proxy-br-1"}
        assert (await admin.post("/api/proxies", json=again)).status_code == 201


# — changed —


async def test_an_address_is_changed_only_while_nobody_is_there(database_url, tmp_path):
    """Else a session would end unseen, with its proxy in other hands."""
    worker = FakeWorker(scrape=[RUNNING])
    async with (
        world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house,
        asked(house, database_url) as people,
    ):
        admin, [proxy] = people["admin"], house.proxies
        changes = (
            ("workers/WRK-000001", {"url": "http://127.0.0.1:2"}),
            (f"proxies/{proxy}", {"host": "other.example.com"}),
            (f"proxies/{proxy}", {"port": None}),
        )
        async with at_work(house, 1):
            for where, body in changes:
                refused = await admin.patch(f"/api/{where}", json=body)
                assert code_of(refused) == (409, "illegal_move"), where
            named = await admin.patch("/api/workers/WRK-000001", json={"name": "other"})
            assert named.json()["name"] == "other"
            worker.scrape = ["completed"]
        for where, body in changes:
            done = await admin.patch(f"/api/{where}", json=body)
            assert done.status_code == 200, done.text
            [(name, value)] = body.items()
            assert done.json()[name] == value


async def test_what_is_changed_is_checked_and_secrets_go_in_only(database_url, tmp_path):
    worker = FakeWorker()
    async with (
        world(
            database_url, tmp_path, workers=[worker], writers=[FakeWriter()], proxies=2
        ) as house,
        asked(house, database_url) as people,
    ):
        admin, [one, other] = people["admin"], house.proxies
        wrong = (
            ("workers/WRK-000001", {"url": "http://169.254.169.254/"}),
            ("workers/WRK-000001", {"url": None}),
            ("workers/WRK-000001", {"surprise": 1}),
            ("writers/WRT-000001", {"url": "http://[::1]"}),
            (f"proxies/{one}", {"host": "169.254.169.254"}),
            (f"proxies/{one}", {"host": "0x7f.1"}),
            (f"proxies/{one}", {"name": None}),
            (f"proxies/{one}", {"port": 0}),
        )
        for where, body in wrong:
            refused = await admin.patch(f"/api/{where}", json=body)
            assert refused.status_code == 422, (where, body, refused.text)
        assert (
            await people["operator"].patch(f"/api/proxies/{one}", json={})
        ).status_code == 403
        assert (await admin.patch("/api/writers/WRT-9", json={"name": "x"})).status_code == 404
        taken = await admin.patch(f"/api/proxies/{one}", json={"name": "proxy-br-2"})
        assert code_of(taken) == (409, "illegal_move")

        new = {"username": "u2", "password": "CANARY-new", "vendor": "acme", "name": "p"}
        shown = await admin.patch(f"/api/proxies/{one}", json=new)
        assert "CANARY" not in shown.text
        assert (shown.json()["name"], shown.json()["vendor"]) == ("p", "acme")
        rows = await house.rows("SELECT vendor FROM pool_items WHERE name = :id", id=one)
        assert rows == [("acme",)]
        assert (await admin.patch(f"/api/proxies/{other}", json={"username": None})).is_success
        rows = await house.rows("SELECT username, password FROM proxies ORDER BY id")
        assert rows[1] == (None, None)
        await admin.patch("/api/workers/WRK-000001", json={"api_key": "CANARY-wrong-key"})
        await admin.post("/api/workers/test", json={})
        await house.drain()
        assert (await admin.get("/api/workers/WRK-000001")).json()["last_test_ok"] is False
        lines = await house.rows(
            "SELECT details FROM audit WHERE verb = 'ads.proxy_changed' AND subject = :id",
            id=one,
        )
        assert "CANARY" not in str(lines)
        assert "password" in str(lines)


# — reset and given up —


async def test_resetar_ends_the_rest_of_a_worker_in_error(database_url, tmp_path):
    worker = FakeWorker(refuse=lambda _: told(500, {}))
    async with (
        world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house,
        asked(house, database_url) as people,
    ):
        await house.change(
            "UPDATE ads_workers SET status = 'error', failures = 7, rests_until = clock_in(800)"
        )
        await house.queue(*await house.add())
        await house.start()
        before = await house.rows("SELECT id, job FROM ads_sessions WHERE ended_at IS NULL")
        assert len(before) == 1  # it only waits for the end of the rest
        path = "/api/workers/WRK-000001/reset"
        assert (await people["viewer"].post(path)).status_code == 403

        shown = (await people["operator"].post(path)).json()
        assert (shown["status"], shown["rests_until"]) == ("idle", None)
        after = await house.rows("SELECT id, job FROM ads_sessions WHERE ended_at IS NULL")
        assert len(after) == 1
        assert after != before
        [(due,)] = await house.rows(
            "SELECT count(*) FROM jobs WHERE state = 'waiting' AND kind = 'ads.session'"
            " AND run_at <= clock()"
        )
        assert due == 1
        assert await audited(house, "ads.worker_reset") == [("WRK-000001", "Olga")]
        again = await people["operator"].post(path)
        assert code_of(again) == (409, "illegal_move")
        await house.change(f"UPDATE ads_sessions SET proxy = '{house.proxies[0]}'")  # noqa: S608
        at_work = await people["operator"].post(path)
        assert "WRK-000001 is not in error" in at_work.json()["detail"]
        await house.change("UPDATE ads_sessions SET proxy = NULL")
        worker.refuse = lambda _: None
        await house.drain()
        assert (await worker_of(house))["status"] == "idle"


async def test_worker_perdido_realocar_frees_its_proxy_and_moves_its_mission(
    database_url, tmp_path
):
    """Only by a person's word: the session of a worker that is silent holds its proxy till then."""
    lost, other = FakeWorker(scrape=[RUNNING]), FakeWorker()
    async with (
        world(
            database_url, tmp_path, workers=[lost, other], writers=[FakeWriter()], proxies=1
        ) as house,
        asked(house, database_url) as people,
    ):
        olga = people["operator"]
        assert code_of(await olga.post("/api/workers/WRK-000001/relocate")) == (
            409,
            "illegal_move",
        )
        await house.change("UPDATE ads_workers SET active = FALSE WHERE id = 'WRK-000002'")
        async with at_work(house, 2) as [mission, following]:
            assert await held(house) == house.proxies
            lost.refuse = lambda _: told(503, {})
            await people["admin"].post("/api/workers/WRK-000001/deactivate")
            await people["admin"].post("/api/workers/WRK-000002/activate")
            reset = await olga.post("/api/workers/WRK-000001/reset")
            assert code_of(reset) == (409, "illegal_move")
            refused = await people["viewer"].post("/api/workers/WRK-000001/relocate")
            assert refused.status_code == 403

            shown = await olga.post("/api/workers/WRK-000001/relocate")
            assert shown.json()["status"] == "error"
        await house.drain()  # what was said while it went idle is done by the next
        found = await house.mission(mission)
        assert (found["status"], found["worker_id"]) == ("completed", "WRK-000002")
        assert found["retry_count"] == 1
        assert (await house.mission(following))["status"] == "completed"
        assert await held(house) == []
        events = await house.rows(
            "SELECT event, details FROM mission_logs WHERE mission_id = :id", id=mission
        )
        codes = [
            read_json(details)["error_code"]
            for event, details in events
            if event == "retry_triggered"
        ]
        assert codes == ["ERROR202"]
        assert await audited(house, "ads.worker_relocated") == [("WRK-000001", "Olga")]
        states = await house.rows(
            "SELECT j.state FROM jobs j JOIN ads_sessions s ON s.job = j.id ORDER BY s.id"
        )
        assert states[0] == ("canceled",)


async def test_row_17_a_session_connects_to_nothing_that_is_blocked(database_url, tmp_path):
    """At use: ERROR502, and not one connection. A person gives the worker up; all is free again."""
    worker = FakeWorker()
    async with world(database_url, tmp_path, workers=[worker]) as house:
        await house.change("UPDATE ads_workers SET url = 'http://169.254.169.254'")
        [mission] = await house.add()
        await house.queue(mission)
        with spying() as dialled:
            await house.start()
            async with running(house.app):
                await eventually(
                    lambda: house.rows("SELECT 1 FROM ads_sessions WHERE lost = 'ERROR502'")
                )
                await house.stop()
                await house.app.write(lambda tx: store.relocate(tx, "WRK-000001", actor=WHO))
                await eventually(
                    lambda: house.rows(
                        "SELECT 1 FROM jobs WHERE kind = 'ads.session' AND state = 'canceled'"
                    )
                )
        assert not any("169.254" in str(address) for address in dialled)
        assert worker.log == []
        assert await held(house) == []


# — the table of their states —


def test_every_status_of_a_worker_has_an_owner_a_bound_and_a_way_out():
    assert set(WORKER_RULES) == set(WorkerStatus)
    knobs = {each.name for each in APP.knobs}
    for status, rule in WORKER_RULES.items():
        assert rule.owner
        assert rule.exits, status
        assert rule.exits <= set(WorkerStatus)
        bounded = rule.timeout in knobs or rule.timeout.startswith(("none:", "rests_until:"))
        assert bounded, status
    reached = set().union(*(rule.exits for rule in WORKER_RULES.values()))
    assert reached == set(WorkerStatus)
    rows = {
        row[0].strip("`"): row for row in rows_of(ROOT / "docs" / "howto" / "ads.md", "status")
    }
    for status, rule in WORKER_RULES.items():
        exits = ", ".join(f"`{each}`" for each in WorkerStatus if each in rule.exits)
        assert rows[status][1:] == [rule.owner, rule.timeout, exits]


# — in pages —


async def test_lists_come_in_pages_by_their_ids(database_url, tmp_path):
    async with (
        world(database_url, tmp_path, proxies=5) as house,
        asked(house, database_url) as people,
    ):
        vera, found = people["viewer"], list[str]()
        answer = (await vera.get("/api/proxies?limit=2")).json()
        found += [each["id"] for each in answer["items"]]
        while answer["next"]:
            answer = await _next(vera, answer["next"])
            found += [each["id"] for each in answer["items"]]
        assert found == house.proxies
        forged = await vera.get("/api/workers?cursor=forged")
        assert code_of(forged) == (422, "bad_cursor")


async def _next(vera: httpx2.AsyncClient, cursor: str) -> dict[str, Any]:
    found: dict[str, Any] = (await vera.get(f"/api/proxies?limit=2&cursor={cursor}")).json()
    return found
