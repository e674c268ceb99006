"""Health tests of workers, proxies and writers: real requests, by jobs; what they gave is beside them."""

from collections.abc import Iterator

import pytest

from retoma.apps.ads import store
from retoma.apps.ads.store import Sort
from retoma.secret import Secret
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter, told
from tests.apps.ads.test_api import asked
from tests.outbound.fakes import redirect, serving, spying
from tests.programs.processes import Program, programs
from tests.web.aids import code_of

PASSWORD = "CANARY-of-the-proxy"  # noqa: S105


@pytest.fixture(scope="module")
def proxy(tmp_path_factory) -> Iterator[Program]:
    """A real one, which asks for a name and a password."""
    with programs(tmp_path_factory.mktemp("proxy")) as started:
        made = started.proxy("px", "user", PASSWORD)
        made.wait()
        yield made


async def last_test(house: World, sort: Sort, id_: str) -> tuple[bool | None, str | None]:
    """Whether it passed and what was wrong; that the rest is told is asserted."""
    [(at, ok, ms, error)] = await house.rows(
        "SELECT last_test_at, last_test_ok, last_test_ms, last_test_error"  # noqa: S608
        f" FROM ads_{sort} WHERE id = :id",
        id=id_,
    )
    assert (at is None) == (ok is None) == (ms is None)
    return (None if ok is None else bool(ok)), error


async def add_proxy(house: World, **given: object) -> str:
    secrets = store.Secrets(await (await house.app.tools["ads"].vault()).sealer(), WHO)
    return await house.app.write(
        lambda tx: store.add_proxy(tx, secrets, **given)  # type: ignore[arg-type]
    )


async def test_a_worker_and_a_writer_are_asked_and_how_that_went_is_kept(
    database_url, tmp_path
):
    async with (
        world(
            database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()], proxies=0
        ) as house,
        asked(house, database_url) as people,
    ):
        olga, vera = people["operator"], people["viewer"]
        [(worker, its_worker)] = house.workers.items()
        [(writer, its_writer)] = house.writers.items()
        assert await last_test(house, Sort.WORKERS, worker) == (None, None)
        for sort, id_ in ((Sort.WORKERS, worker), (Sort.WRITERS, writer)):
            answer = await olga.post(f"/api/{sort}/{id_}/test")
            assert (answer.status_code, answer.json()) == (202, {"tests": 1})
            await house.drain()
            assert await last_test(house, sort, id_) == (True, None)
            [shown] = (await vera.get(f"/api/{sort}")).json()["items"]
            assert shown["last_test_ok"] is True
            assert shown["last_test_ms"] >= 0
            assert shown["last_test_at"]

        its_worker.refuse = lambda _: told(500, {})
        its_writer.healthy = False
        for sort, id_ in ((Sort.WORKERS, worker), (Sort.WRITERS, writer)):
            await olga.post(f"/api/{sort}/test", json={"ids": [id_, id_]})
            await house.drain()
            ok, error = await last_test(house, sort, id_)
            assert ok is False
            assert error
        _, error = await last_test(house, Sort.WORKERS, worker)
        assert str(error).endswith(": worker: GET http://127.0.0.1: HTTP 500")
        states = {state for (state,) in await house.rows("SELECT state FROM jobs")}
        assert states == {"done"}  # that a test fails is its result

        its_worker.refuse = lambda _: told(200, {"nothing": "at all"})
        await olga.post("/api/workers/test", json={})
        await house.drain()
        assert await last_test(house, Sort.WORKERS, worker) == (
            False,
            "the answer has no status",
        )
        nobody = await olga.post("/api/workers/test", json={"ids": [worker, "WRK-999999"]})
        assert code_of(nobody) == (404, "not_found")
        assert (await vera.post(f"/api/workers/{worker}/test")).status_code == 403
        [(said,)] = await house.rows("SELECT count(*) FROM jobs WHERE state = 'waiting'")
        assert said == 0


async def test_a_proxy_is_tested_by_a_real_request_through_it_with_its_credentials(
    database_url, tmp_path, proxy
):
    async with world(database_url, tmp_path, proxies=0) as house, serving() as site:
        await house.app.knobs.set("ads.proxy_test_url", f"{site.url}/there", actor=WHO)
        here = {"host": "127.0.0.1", "port": proxy.port, "username": "user"}
        good = await add_proxy(house, **here, password=Secret(PASSWORD), name="good")
        bad = await add_proxy(house, **here, password=Secret("CANARY-wrong"), name="bad")
        nobody = await add_proxy(house, host="127.0.0.1", port=1, name="nobody")
        asks = await house.app.write(lambda tx: store.ask_tests(tx, Sort.PROXIES, actor=WHO))
        assert asks == 3
        await house.drain()

        assert await last_test(house, Sort.PROXIES, good) == (True, None)
        assert [(each.method, each.target) for each in site.asked] == [("GET", "/there")]
        assert site.asked[0].headers["forwarded"] == "by=_px"
        for id_ in (bad, nobody):
            ok, error = await last_test(house, Sort.PROXIES, id_)
            assert ok is False
            assert "CANARY" not in str(error)


async def test_row_17_a_health_test_connects_to_nothing_that_is_blocked(
    database_url, tmp_path, proxy
):
    """Neither to a worker or writer at such an address, nor to a proxy there, nor through a good
    proxy to such an address, nor on to where an answer points."""
    async with (
        world(database_url, tmp_path, workers=[FakeWorker()], proxies=0) as house,
        serving(redirect("http://169.254.169.254/")) as sly,
    ):
        [worker] = house.workers
        metadata = await add_proxy(house, host="169.254.169.254", port=80, name="metadata")
        here = {"host": "127.0.0.1", "port": proxy.port, "username": "user"}
        good = await add_proxy(house, **here, password=Secret(PASSWORD), name="good")
        for url, part in (
            ("http://169.254.169.254/", "ssrf_blocked"),
            ("http://[::ffff:10.0.0.1]/", "ssrf_blocked"),
            ("http://2130706433/", "host name is not valid"),
            ("https://localhost/", "ssrf_blocked"),
            (sly.url, "HTTP 302"),
        ):
            await house.change(f"UPDATE ads_workers SET url = '{url}'")  # noqa: S608
            with spying() as dialled:
                await _tested(house, Sort.WORKERS, worker)
            assert part in str(await last_test(house, Sort.WORKERS, worker)), url
            assert {host for host, *_ in dialled} <= {"127.0.0.1"}, url
        await house.app.knobs.set("ads.proxy_test_url", sly.url, actor=WHO)
        with spying() as dialled:
            await _tested(house, Sort.PROXIES, metadata)
        assert "ssrf_blocked" in str(await last_test(house, Sort.PROXIES, metadata))
        assert dialled == []
        for url in ("http://169.254.169.254/", "https://169.254.169.254/", "http://[::1]/"):
            await house.app.knobs.set("ads.proxy_test_url", url, actor=WHO)
            with spying() as dialled:
                await _tested(house, Sort.PROXIES, good)
            ok, error = await last_test(house, Sort.PROXIES, good)
            assert (ok, dialled) == (False, []), (url, error)


async def _tested(house: World, sort: Sort, id_: str) -> None:
    await house.app.write(lambda tx: store.ask_tests(tx, sort, [id_], actor=WHO))
    await house.drain()


async def test_every_hour_all_of_them_are_tested(database_url, tmp_path):
    """By a schedule of the engine, whichever runner has that duty."""
    async with world(
        database_url, tmp_path, workers=[FakeWorker()], writers=[FakeWriter()]
    ) as house:
        await house.app.knobs.set("ads.proxy_test_url", "http://127.0.0.1:1/", actor=WHO)
        [schedule] = await house.app.schedules.list()
        assert (schedule.name, schedule.plan.cron) == ("ads.health", "0 * * * *")
        await house.app.schedules.run("ads.health", actor=WHO)
        await house.drain()

        [(tests,)] = await house.rows("SELECT count(*) FROM jobs WHERE kind = 'ads.health'")
        assert tests == 1 + 3
        for sort, ids in (
            (Sort.WORKERS, house.workers),
            (Sort.WRITERS, house.writers),
            (Sort.PROXIES, house.proxies),
        ):
            for id_ in ids:
                ok, _ = await last_test(house, sort, id_)
                assert ok is (
                    sort is not Sort.PROXIES
                )  # no such name as proxy.example.com here
