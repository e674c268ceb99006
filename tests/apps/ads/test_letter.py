"""Workers to the letter of §9.1, which know no keys and hang up: no scrape twice, none left running."""

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from retoma import State
from retoma.apps.ads import store
from retoma.apps.ads.model import MediaType, NewMission
from retoma.apps.ads.steps.hands import UNKNOWN
from retoma.db.rows import read_json
from retoma.secret import Secret
from tests import nursery
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import KEY, FakeWorker, FakeWriter
from tests.apps.ads.letter_worker import hang_up
from tests.apps.ads.test_cancel import noted, working_until
from tests.apps.ads.test_steps import idle, under_way
from tests.engine.aids import eventually
from tests.outbound.fakes import Asked
from tests.programs import logbooks

PATIENCE = 90.0  # seconds of a loaded machine
OVER = {"completed", "failed", "canceled"}


# — one by one, by a clock that jumps —


@dataclass
class HangsUp(FakeWorker):
    """Says nothing to the first scrape, which has begun or not; it rests after so many looks."""

    keys: bool = False
    begins: bool = True
    looks: int = 5
    hung_up: bool = False
    ended_live: int = 0

    def __call__(self, asked: Asked) -> Any:
        if asked.method == "DELETE" and self.live is not None:
            self.ended_live += 1
        if (asked.method, asked.target) == ("POST", "/scrape") and not self.hung_up:
            self.hung_up = True
            if self.begins:
                super().__call__(asked)
            return hang_up()
        if asked.target == "/session/status" and self.hung_up and len(self.jobs) == 1:
            self.looks -= 1
            if self.looks <= 0 and self.begins:
                self.live = None
        return super().__call__(asked)


@pytest.mark.parametrize("begins", [True, False])
async def test_h50_a_hang_up_costs_seconds_counts_and_is_told_of(
    database_url, tmp_path, begins
):
    """Its session is not ended: that would end its answer, and not the scrape."""
    worker = HangsUp(begins=begins)
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        await house.app.knobs.set("ads.polling_job", 5, actor=WHO)
        [mission] = await under_way(house)
        began = house.clock.now()
        await house.drain()

        row, events = await house.mission(mission), await house.events(mission)
        assert ("completed", 1) == (row["status"], row["retry_count"])
        assert ["scrape_failed", "retry_triggered"] == [
            each for each in events if each in ("scrape_failed", "retry_triggered")
        ]
        assert worker.ended_live == 0
        assert [verb for verb, _ in worker.log] == [
            *("session", *["scrape"] * (1 + begins), "delete")
        ]
        [(said,)] = await house.rows(
            "SELECT details FROM ads_logs WHERE event = 'scrape_failed'"
        )
        assert "never arrived" not in str(said)
        assert "foi visto sem nenhum" in read_json(said)["error_message"]
        assert house.clock.now() - began < (150 if begins else 90)
        assert await idle(house)


async def test_h50_a_mission_is_unknown_for_as_long_as_its_worker_scrapes(
    database_url, tmp_path
):
    worker = HangsUp(looks=10_000)
    async with world(
        database_url,
        tmp_path,
        workers=[worker, FakeWorker()],
        writers=[FakeWriter()],
        proxies=2,
    ) as house:
        await house.change("UPDATE ads_workers SET active = FALSE WHERE id = 'WRK-000002'")
        [mission] = await under_way(house)
        async with working_until(house, lambda: noted(house, store.EXTRACTION, UNKNOWN)):
            await house.change("UPDATE ads_workers SET active = TRUE WHERE id = 'WRK-000002'")
            await house.app.write(store.open_sessions)
            seen = house.clock.now()
            await eventually(lambda: _later(house, seen + 600))
            row = await house.mission(mission)
            assert ("running", "WRK-000001") == (row["status"], row["worker_id"])
            assert (
                sum(verb == "scrape" for w in house.workers.values() for verb, _ in w.log) == 1
            )
            worker.looks = 0
        assert (await house.mission(mission))["status"] == "completed"
        assert worker.ended_live == 0


async def _later(house: World, at: float) -> bool:
    return house.clock.now() > at


async def test_h50_a_canceled_mission_that_nobody_can_name_is_stopped_by_its_session(
    database_url, tmp_path
):
    worker = HangsUp(looks=10_000)
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        async with working_until(house, lambda: noted(house, store.EXTRACTION, UNKNOWN)):
            await house.cancel(mission)
        assert (await house.mission(mission))["status"] == "canceled"
        assert worker.live is None
        assert await idle(house)


async def test_m1_a_scrape_goes_on_though_its_session_was_seen_to_end(database_url, tmp_path):
    """By its id it is asked after, and stopped, before anybody sends it again."""

    class Outlives(FakeWorker):
        def __call__(self, asked: Asked) -> Any:
            live = self.live
            said = super().__call__(asked)
            if asked.method == "DELETE" and live is not None:
                self.over.discard(live)
                self.scrape = ["running"]
            return said

    worker = Outlives(session=["ready"], scrape=["running"])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)

        async def scraping() -> Any:
            return (await house.mission(mission))["worker_job_id"]

        async with working_until(house, scraping):
            await house.app.write(lambda tx: store.lose_session(tx, 1, "ERROR103"))
            await eventually(lambda: _said(worker, "cancel"))
            worker.scrape = ["completed"]
        assert (await house.mission(mission))["status"] == "completed"
        verbs = [verb for verb, _ in worker.log]
        assert verbs.index("cancel") < len(verbs) - 1 - verbs[::-1].index("scrape")


async def _said(worker: FakeWorker, verb: str) -> bool:
    return any(each == verb for each, _ in worker.log)


async def test_m1_a_worker_that_was_lost_and_comes_back_stops_what_it_is_at(
    database_url, tmp_path
):
    """§7: the mission has gone elsewhere; before its next session the old scrape is canceled."""
    worker = FakeWorker(scrape=["running"])
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)

        async def scraping() -> Any:
            return (await house.mission(mission))["worker_job_id"]

        async with working_until(house, scraping):
            old = await scraping()
            await house.app.write(lambda tx: store.relocate(tx, "WRK-000001", actor=WHO))
            await eventually(lambda: _said(worker, "cancel"))
            worker.scrape = ["completed"]
        assert ("cancel", old) in worker.log
        assert (await house.mission(mission))["status"] == "completed"
        assert await house.rows("SELECT * FROM ads_left_scrapes") == []


# — all at once, by processes that are killed —


@dataclass
class Letters:
    """Workers and orchestrators, each a process of its own."""

    house: World
    folder: Path
    children: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def logs(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"))

    def worker(self, name: str, seconds: float, hangups: str) -> None:
        words = (str(self.ports.get(name, 0)), str(self.folder / f"{name}.jsonl"), KEY)
        child = self._begin(name, "letter_worker", *words, str(seconds), hangups)
        assert child.stdout is not None
        self.ports[name] = int(child.stdout.readline())

    def orchestrator(self, name: str) -> None:
        self._begin(
            name, "run_orchestrator", self.house.app.url, str(self.folder / "key"), name
        )

    def _begin(self, name: str, module: str, *words: str) -> "subprocess.Popen[bytes]":
        log = (self.folder / f"{name}.log").open("ab")
        with log:
            self.children[name] = nursery.Born(
                [sys.executable, "-m", f"tests.apps.ads.{module}", *words],
                stdout=subprocess.PIPE,
                stderr=log,
            )
        return self.children[name]

    def kill(self, name: str) -> None:
        child = self.children.pop(name)
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()


@asynccontextmanager
async def letters(
    url: str, folder: Path, seconds: float, hangups: dict[str, str]
) -> AsyncIterator[Letters]:
    async with world(url, folder, writers=[FakeWriter()], proxies=3, real_time=True) as house:
        found = Letters(house, folder)
        for name, value in {"polling_session": 0.2, "polling_job": 0.2}.items():
            await house.app.knobs.set(f"ads.{name}", value, actor=WHO)
        secrets = store.Secrets(await (await house.app.tools["ads"].vault()).sealer(), WHO)
        try:
            for name, script in hangups.items():
                found.worker(name, seconds, script)
                at = f"127.0.0.1:{found.ports[name]}"
                told: dict[str, Any] = {"url": f"http://{at}", "storage_domain": at}
                await house.app.write(
                    lambda tx, name=name, told=told: store.add_worker(  # type: ignore[misc]
                        tx, secrets, name=name, api_key=Secret(KEY), **told
                    )
                )
            yield found
        finally:
            for name in list(found.children):
                found.kill(name)


async def at_rest(house: World) -> bool:
    statuses = {each for (each,) in await house.rows("SELECT status FROM missions")}
    open_ = await house.rows("SELECT count(*) FROM ads_sessions WHERE ended_at IS NULL")
    return statuses <= OVER and open_[0][0] == 0


@pytest.mark.parametrize(
    ("missions", "kills"),
    [
        pytest.param(3, 1, marks=pytest.mark.timeout(200)),
        pytest.param(60, 30, marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
    ],
)
async def test_m1_by_the_workers_own_logs_no_scrape_is_live_twice_and_none_is_left(
    database_url, tmp_path, missions, kills
):
    """Hang-ups before and after a scrape has begun; orchestrators and workers killed with -9."""
    chance = random.Random(11)
    scripts = {"wa": "b", "wb": "c"}
    if missions > len(scripts) + 1:
        scripts = {name: "".join(chance.choices("aabc", k=200)) for name in ("wa", "wb", "wc")}
    seconds = 1.0 if len(scripts) == 2 else 2.0
    async with letters(database_url, tmp_path, seconds, scripts) as found:
        house = found.house
        await house.app.knobs.set("ads.max_retries", 100, actor=WHO)
        for name in ("one", "two"):
            found.orchestrator(name)
        wanted = [
            NewMission(_day(n), _day(n), MediaType.VIDEO, ("pt",)) for n in range(missions)
        ]
        ids = await house.app.write(lambda tx: store.add_missions(tx, wanted, actor=WHO))
        await house.queue(*ids)
        await house.start()
        for _ in range(kills):
            await asyncio.sleep(chance.uniform(0.5, 2.0))  # chaos has no fact to wait for
            name = chance.choice(["one", "two"] if kills == 1 else ["one", "two", *scripts])
            found.kill(name)
            if name in scripts:
                found.worker(name, seconds, scripts[name])
            else:
                found.orchestrator(name)
        await eventually(lambda: at_rest(house), within=PATIENCE * (1 + kills))

        statuses = await house.rows("SELECT status, count(*) FROM missions GROUP BY status")
        assert [("completed", missions)] == statuses
        assert [] == logbooks.doubled(found.logs)
        assert [] == logbooks.left(found.logs)
        begun = sum(line["event"] == "scrape.began" for line in logbooks.lines(found.logs))
        [(counted,)] = await house.rows("SELECT sum(retry_count) FROM missions")
        assert begun - missions <= counted, "each scrape that was begun again is counted"
        told_of = await house.rows(
            "SELECT count(*) FROM mission_logs WHERE event = 'retry_triggered'"
        )
        assert told_of == [(counted,)]
        assert begun > missions
        assert await house.app.jobs(state=State.PARKED) == []


def _day(n: int) -> date:
    return date(2025, 1, 1) + timedelta(days=n)
