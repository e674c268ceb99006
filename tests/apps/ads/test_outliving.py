"""Workers whose scrapes outlive their sessions, and answers that cannot be read: no scrape twice at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from retoma.apps.ads import store
from retoma.apps.ads.steps.hands import UNKNOWN
from retoma.testing import drain
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import KEY, FakeWorker, FakeWriter, told
from tests.apps.ads.letter_worker import hang_up
from tests.apps.ads.test_cancel import noted, working_until
from tests.apps.ads.test_steps import under_way
from tests.apps.ads.test_true_codes import logged
from tests.outbound.fakes import Asked, answer

PATIENCE = 90.0  # seconds of a loaded machine
LASTS = 300.0  # seconds of a scrape: longer than a session may take to get ready


@dataclass
class Outliving:
    """A worker to the letter of §9.1, by the clock of the test. Only its end or a cancel ends a scrape."""

    clock: Any = None
    first: Any = None  # what it answers to its first scrape, which has begun; None: its id
    drops: bool = False  # its session is lost with the first answer
    lasts: float = LASTS
    unknown: int = 404  # what it answers to a request that it does not know
    open: bool = False
    lost: bool = False
    began: list[float] = field(default_factory=list)
    ends: dict[str, float] = field(default_factory=dict)
    log: list[tuple[str, Any]] = field(default_factory=list)

    @property
    def live(self) -> bool:
        return any(self.clock.now() < end for end in self.ends.values())

    def __call__(self, asked: Asked) -> Any:
        if asked.headers.get("x-api-key") != KEY:
            return told(401, {})
        match asked.method, asked.target.strip("/").split("/"):
            case "POST", ["session"]:
                self.open, self.lost = True, False
                return told(200, {})
            case "DELETE", ["session"]:
                self.open = False
                return told(200, {})
            case "GET", ["session", "status"]:
                return told(200, {"status": self._status()})
            case "POST", ["scrape"]:
                return self._scrape()
            case "GET", ["scrape", job] if job in self.ends:
                over = self.clock.now() >= self.ends[job]
                return told(200, {"status": "completed" if over else "running", "ads_count": 3})
            case "POST", ["scrape", job, "cancel"] if job in self.ends:
                self.ends[job] = min(self.ends[job], self.clock.now())
                return told(200, {})
            case _:
                return told(self.unknown, {})

    def _status(self) -> str:
        if not self.open:
            return "terminated"
        if self.lost:
            return "disconnected"
        return "scraping" if self.live else "ready"

    def _scrape(self) -> Any:
        if not self.open:
            return told(404, {})
        job = f"scrape_{len(self.ends):08x}"
        self.began.append(self.clock.now())
        self.ends[job] = self.clock.now() + self.lasts
        if len(self.ends) == 1 and self.first is not None:
            self.lost = self.drops
            return self.first()
        return told(200, {"job_id": job})


async def half() -> Any:
    """The beginning of an answer; then the connection is closed."""
    yield b'HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"job_id": '


ANSWERS = {
    "nothing": hang_up,
    "half": half,
    "no id": lambda: told(200, {}),
    "a hostile id": lambda: told(200, {"job_id": "../../x"}),
    "no JSON": lambda: answer(200, b"<html>ok</html>"),
    "HTTP 500": lambda: told(500, {}),
    "HTTP 504": lambda: told(504, {}),
}


async def scraped_by(house: World, workers: Sequence[Outliving]) -> dict[str, Any]:
    """One mission, to its end: no two scrapes of it at a time, and none goes on."""
    for name in ("polling_session", "polling_job"):
        await house.app.knobs.set(f"ads.{name}", 50, actor=WHO)  # few looks: each costs a claim
    for worker in workers:
        worker.clock = house.clock
    [mission] = await under_way(house)
    await drain(house.app, within=PATIENCE)

    began = sorted(at for worker in workers for at in worker.began)
    assert all(first + workers[0].lasts <= second for first, second in pairwise(began)), began
    assert not any(worker.live for worker in workers)
    row = await house.mission(mission)
    assert (row["status"], row["retry_count"]) == ("completed", len(began) - 1)
    return row


@pytest.mark.parametrize("said", ANSWERS)
async def test_m1_a_session_that_is_lost_is_no_proof_that_its_scrape_has_ended(
    database_url, tmp_path, said
):
    """The next session of the worker says `scraping`, and no mission is sent before it says `ready`."""
    workers = [Outliving(first=ANSWERS[said], drops=True) for _ in range(2)]
    async with world(
        database_url, tmp_path, workers=workers, writers=[FakeWriter()], proxies=3
    ) as house:
        await scraped_by(house, workers)
        failed = await logged(house, "session_failed")
        assert [each["error_code"] for each in failed] == ["ERROR103"] * len(workers), failed


@pytest.mark.parametrize("said", ["no id", "a hostile id"])
async def test_m1_an_answer_without_an_id_is_no_proof_that_no_scrape_has_begun(
    database_url, tmp_path, said
):
    workers = [Outliving(first=ANSWERS[said], lasts=30) for _ in range(2)]
    async with world(
        database_url, tmp_path, workers=workers, writers=[FakeWriter()], proxies=2
    ) as house:
        await scraped_by(house, workers)
        for each in await logged(house, "scrape_failed"):
            assert "invalid_remote_id" in each["error_message"]
            assert "foi visto sem nenhum" in each["error_message"]


async def test_m1_an_answer_is_read_whatever_good_status_it_has(database_url, tmp_path):
    worker = Outliving(first=lambda: told(202, {"job_id": "scrape_00000000"}), lasts=30)
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        row = await scraped_by(house, [worker])
        assert row["retry_count"] == 0


@pytest.mark.parametrize("unknown", [400, 401, 422, 501])
async def test_h50_a_worker_without_keys_may_refuse_that_question_in_any_way(
    database_url, tmp_path, unknown
):
    """§9.1 has no `GET /scrape?key=`: no answer to it holds a mission for ever."""
    worker = Outliving(first=hang_up, unknown=unknown, lasts=30)
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        await scraped_by(house, [worker])


async def test_h50_a_canceled_mission_does_not_wait_for_a_session_that_will_not_come(
    database_url, tmp_path
):
    worker = Outliving(first=hang_up)
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        worker.clock = house.clock
        [mission] = await under_way(house)
        async with working_until(house, lambda: noted(house, store.EXTRACTION, UNKNOWN)):
            await house.app.write(lambda tx: store.stop_now(tx, actor=WHO))
        assert (await house.mission(mission))["status"] == "canceled"
        assert len(worker.began) == 1


async def test_m1_a_writer_that_names_no_id_is_asked_for_what_it_has(database_url, tmp_path):
    """The ads are sent once: what it has under the id that it was offered is that job."""
    writer = FakeWriter()
    said = writer.__call__

    def no_id(asked: Asked) -> bytes | None:
        if (asked.method, asked.target) != ("POST", "/process"):
            return None
        writer.refuse = lambda _: None
        said(asked)
        writer.refuse = no_id
        return told(200, {"status": "processing"})

    writer.refuse = no_id
    async with world(database_url, tmp_path, workers=[FakeWorker()], writers=[writer]) as house:
        [mission] = await under_way(house)
        await house.drain()
        assert (await house.mission(mission))["status"] == "completed"
        assert len(writer.log) == 1
