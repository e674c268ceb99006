"""The ads orchestrator over the API: what people and programs say to it, and what they are told."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest

from retoma.apps.ads import APP
from tests.apps.ads.aids import World, world
from tests.apps.ads.fakes import KEY, FakeWorker, FakeWriter
from tests.apps.people import people
from tests.web.aids import code_of

DAY: dict[str, Any] = {
    "date_start": "2025-01-15",
    "date_end": "2025-01-15",
    "media_type": "video",
    "languages": ["pt"],
}


def asked(house: World, url: str) -> AbstractAsyncContextManager[dict[str, httpx2.AsyncClient]]:
    return people(house.app, APP, url)


async def test_from_the_banco_to_the_end_by_the_verbs_of_the_document(database_url, tmp_path):
    async with (
        world(database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]) as house,
        asked(house, database_url) as people,
    ):
        olga, vera = people["operator"], people["viewer"]
        made = await olga.post("/api/missions", json={"missions": [DAY, DAY]})
        assert made.status_code == 201
        first, second = made.json()["ids"]
        [shown, _] = (await vera.get("/api/missions?status=novo")).json()["items"]
        assert (shown["id"], shown["checkpoint"], shown["retry_count"]) == (second, None, 0)

        queued = await olga.post("/api/missions/queue", json={"missions": [first]})
        assert queued.status_code == 200
        before = (await vera.get("/api/orchestrator")).json()
        assert (before["wish"], before["queued_count"]) == ("stopped", 1)
        for _ in range(2):  # a second click is a no-op
            started = (await olga.post("/api/orchestrator/start")).json()
            assert (started["wish"], started["changed_by"]) == ("started", "Olga")
        await house.drain()

        done = (await vera.get(f"/api/missions/{first}")).json()
        assert (done["status"], done["checkpoint"], done["queued_by"]) == (
            "completed",
            "finalizado",
            "Olga",
        )
        assert (done["success_count"], done["failed_count"]) == (1487, 13)
        told = (await vera.get(f"/api/missions/{first}/timeline")).json()
        assert told[0] == {
            **told[0],
            "event": "mission_queued",
            "details": {"queued_by": "Olga"},
        }
        assert told[-1]["details"]["ads_count"] == 1500
        [worker] = (await vera.get("/api/workers")).json()["items"]
        assert (worker["status"], worker["current_mission_id"]) == ("idle", None)
        [proxy] = (await vera.get("/api/proxies")).json()["items"]
        assert (proxy["in_use_by_worker_id"], proxy["fail_count"]) == (None, 0)

        again = await olga.post("/api/missions/queue", json={"missions": [first]})
        assert again.status_code == 200
        assert (await vera.get(f"/api/missions/{first}")).json()["generation"] == 2


async def test_row_14_one_that_runs_is_not_queued_again_and_nothing_of_the_rest(
    database_url, tmp_path
):
    async with (
        world(database_url, tmp_path) as house,
        asked(house, database_url) as people,
    ):
        first, second = await house.add(2)
        await house.queue(first)

        both = {"missions": [second, first]}
        refused = await people["operator"].post("/api/missions/queue", json=both)
        assert code_of(refused) == (409, "illegal_move")
        assert (await house.mission(second))["status"] == "novo"
        nobody = await people["operator"].post("/api/missions/MIS-999999/cancel")
        assert code_of(nobody) == (404, "not_found")


async def test_row_10_the_same_key_makes_missions_once(database_url, tmp_path):
    async with (
        world(database_url, tmp_path) as house,
        asked(house, database_url) as people,
    ):
        body = {"missions": [DAY]}
        answers = [
            await people["operator"].post(
                "/api/missions", json=body, headers={"Idempotency-Key": "k"}
            )
            for _ in range(2)
        ]
        assert [each.status_code for each in answers] == [201, 200]
        assert answers[0].json() == answers[1].json()


BAD = (
    {**DAY, "date_end": "2025-01-14"},
    {**DAY, "media_type": "audio"},
    {**DAY, "languages": []},
    {**DAY, "languages": ["portuguese; drop table"]},
    {**DAY, "surprise": 1},
    {"date_start": "2025-01-15"},
)


async def test_row_9_a_mission_that_is_none_is_refused(database_url, tmp_path):
    async with (
        world(database_url, tmp_path) as house,
        asked(house, database_url) as people,
    ):
        for body in BAD:
            refused = await people["operator"].post("/api/missions", json={"missions": [body]})
            assert code_of(refused) == (422, "bad_input"), body
        assert await house.rows("SELECT id FROM missions") == []


ADDRESSES = (
    *("http://169.254.169.254/", "http://[::1]", "http://[::ffff:10.0.0.1]", "http://0x7f.1"),
    *("http://2130706433", "file:///etc/passwd", "gopher://x", "https://good@evil", "worker"),
)


async def test_rows_17_and_18_an_address_nobody_may_call_is_refused_when_it_is_saved(
    database_url, tmp_path
):
    async with (
        world(database_url, tmp_path) as house,
        asked(house, database_url) as people,
    ):
        admin = people["admin"]
        for url in ADDRESSES:
            body = {"name": "W", "url": url, "api_key": KEY, "storage_domain": "s.example.org"}
            refused = await admin.post("/api/workers", json=body)
            assert refused.status_code == 422, (url, refused.text)
        for domain in ("a/b", "u@h", "a\r\nb", ""):
            body = {"name": "W", "url": "http://127.0.0.1:1", "api_key": KEY}
            refused = await admin.post("/api/workers", json={**body, "storage_domain": domain})
            assert refused.status_code == 422, domain
        assert await house.rows("SELECT id FROM workers") == []

        body = {"name": "W", "url": "http://127.0.0.1:1", "api_key": KEY}
        assert (await admin.post("/api/workers", json=body)).status_code == 201
        [kept] = (await admin.get("/api/workers")).json()["items"]
        assert kept["active"] is False  # nobody could fetch what it finds


async def test_a_name_that_another_proxy_has_is_refused_and_nothing_kept(
    database_url, tmp_path
):
    async with (
        world(database_url, tmp_path) as house,
        asked(house, database_url) as people,
    ):
        body = {"host": "p.example.org", "port": 8080, "username": "u", "password": "CANARY"}
        answers = [await people["admin"].post("/api/proxies", json=body) for _ in range(2)]

        assert answers[0].status_code == 201
        assert code_of(answers[1]) == (409, "illegal_move")
        only = (await people["viewer"].get("/api/proxies")).json()["items"][-1]
        assert only["name"] == "p.example.org:8080"
        kept = await house.rows("SELECT count(*) FROM pool_items WHERE pool = 'ads.proxies'")
        assert kept[0][0] == len(house.proxies) + 1


async def test_e27_keys_and_passwords_are_told_to_nobody(database_url, tmp_path):
    async with (
        world(database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]) as house,
        asked(house, database_url) as people,
    ):
        secret = "CANARY-of-a-proxy"  # noqa: S105
        body = {"host": "p.example.org", "username": "u", "password": secret}
        assert (await people["admin"].post("/api/proxies", json=body)).status_code == 201
        said = [
            (await people["admin"].get(f"/api/{what}")).text
            for what in ("workers", "proxies", "writers", "events")
        ]
        rows = await house.rows("SELECT * FROM proxies")
        for text in (*said, str(rows), str(await house.rows("SELECT * FROM workers"))):
            assert "CANARY" not in text


@pytest.mark.parametrize("what", ["workers", "proxies", "writers"])
async def test_row_2_an_operator_adds_no_worker(database_url, tmp_path, what):
    async with (
        world(database_url, tmp_path) as house,
        asked(house, database_url) as people,
    ):
        refused = await people["operator"].post(f"/api/{what}", json={})
        assert refused.status_code == 403


@pytest.mark.parametrize("view", ["missions", "workers", "proxies", "writers", "mission_logs"])
async def test_what_is_written_into_a_view_is_refused_with_the_way_to_do_it(
    database_url, tmp_path, view
):
    async with world(
        database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]
    ) as house:
        await house.queue(*await house.add())
        await house.start()
        await house.drain()
        with pytest.raises(Exception, match=r"is a view: use the API, /api/"):
            await house.change(f"DELETE FROM {view}")  # noqa: S608
