"""Who no longer holds a mission writes nothing about it, whatever it sees (E3)."""

import asyncio
from dataclasses import dataclass

import pytest

from retoma import Transient
from retoma.apps.ads import store
from retoma.apps.ads.steps.extraction import Scraping
from retoma.apps.ads.steps.hands import Hands
from retoma.engine.rules.job import SavedStep
from tests.apps.ads.aids import WHO, World, world
from tests.apps.ads.fakes import FakeWorker, FakeWriter
from tests.apps.ads.test_cancel import LONG, named
from tests.apps.ads.test_steps import under_way
from tests.engine.aids import eventually

HELD_BY_SOMEBODY = """
UPDATE jobs SET state = 'running', turn = NULL, aside = NULL,
    runner = (SELECT max(boot) FROM runners)
WHERE kind = 'ads.extraction'"""


@dataclass(frozen=True, slots=True)
class Claimed:
    """Of a context what says who asks; it has sent nothing."""

    job: int
    epoch: int

    def remote_steps(self) -> list[SavedStep]:
        return []


async def scraping(house: World, mission: str) -> Claimed:
    """Its worker has begun, and nobody of ours is at work any more; the claim it stands at."""
    await house.app.knobs.set("ads.timeout_job", LONG, actor=WHO)
    working = asyncio.create_task(house.drain())
    try:
        await eventually(lambda: named(house, mission, "worker_job_id"))
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    [(job, epoch)] = await house.rows(
        "SELECT j.id, j.epoch FROM ads_missions m JOIN jobs j ON j.id = m.extraction"
    )
    return Claimed(job, epoch)


async def found_late(house: World, mission: str, by: Claimed) -> None:
    """Somebody asks after what was sent under this claim, of a worker that cannot say for whom it works."""
    hands = Hands(house.app.tools["ads"])
    [worker] = house.workers
    [(session,)] = await house.rows("SELECT session FROM ads_missions")
    wanted = await hands.read(lambda tx: store.mission_of(tx, mission))
    client, place = await hands.worker_client(worker), store.Place(session, worker, None)
    late = Scraping(hands, by, wanted, client, place)  # type: ignore[arg-type]
    with pytest.raises(Transient, match="Result unknown"):
        await late.find("a key")


async def test_e3_who_is_late_ends_nobodys_session(database_url, tmp_path):
    """By now its worker may scrape for the next one."""
    worker = FakeWorker(scrape=["running"], keys=False)
    async with world(database_url, tmp_path, workers=[worker], writers=[FakeWriter()]) as house:
        [mission] = await under_way(house)
        held = await scraping(house, mission)
        lost = "SELECT lost FROM ads_sessions"
        await house.change(HELD_BY_SOMEBODY)
        await house.change("UPDATE ads_missions SET canceled_by = 'ana'")

        await found_late(house, mission, Claimed(held.job, held.epoch - 1))
        assert [(None,)] == await house.rows(lost), "another has claimed it since"
        await house.change("UPDATE runners SET state = 'lost'")
        await found_late(house, mission, held)
        assert [(None,)] == await house.rows(lost), "its runner is lost, its job with it"
        await house.change("UPDATE runners SET state = 'alive'")
        await found_late(house, mission, held)
        assert [("ERROR201",)] == await house.rows(lost)
