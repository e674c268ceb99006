"""Gates on both databases: caps hold, what is set aside comes back, a paused batch waits (E16, E28)."""

import asyncio
from collections import Counter
from typing import Any

from retoma import Context, Limit, Retoma
from retoma.engine.states import State
from retoma.engine.testing import drain
from tests.engine.aids import rows

USED = "SELECT key, used FROM limits ORDER BY key"
ASIDE = "SELECT aside, count(*) FROM jobs WHERE aside IS NOT NULL GROUP BY aside ORDER BY aside"
# What counts is what runs, whatever has happened: `used` of each key, and the jobs that hold it.
APART = """SELECT l.key FROM limits l WHERE used <> (
    SELECT count(*) FROM jobs j WHERE j.state = 'running' AND j.limit_key = l.key)"""


class Gauge:
    """How many stories of each key are being told, and the most there ever were."""

    def __init__(self) -> None:
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def told(self, *keys: str) -> None:
        for key in keys:
            self.now[key] += 1
            self.most[key] = max(self.most[key], self.now[key])
        await asyncio.sleep(0.005)
        for key in keys:
            self.now[key] -= 1


async def test_e16_no_more_jobs_of_a_kind_run_at_once_than_its_limit(database_url):
    async with Retoma(database_url) as app:
        gauge = Gauge()

        @app.job(limit=3)
        async def work(ctx: Context, n: int) -> None:
            await gauge.told("work")

        @app.job
        async def free(ctx: Context, n: int) -> None:
            await gauge.told("free")

        batch = await app.submit_many(work, range(60))
        other = await app.submit_many(free, range(60))

        await drain(app, slots=20)

        assert {State.DONE: 60} == await batch.counts() == await other.counts()
        assert 3 == gauge.most["work"]
        assert 3 < gauge.most["free"]
        database = await app.database()
        assert [("kind:work", 0)] == await rows(database, USED)
        assert [] == await rows(database, ASIDE)


async def test_e16_each_key_has_its_own_room_and_both_gates_count(database_url):
    async with Retoma(database_url) as app:
        gauge = Gauge()

        @app.job(limit=[5, Limit(2, per="site")])
        async def scrape(ctx: Context, page: dict[str, Any]) -> None:
            await gauge.told("all", page["site"])

        batch = await app.submit_many(scrape, [{"site": "abcd"[n % 4]} for n in range(80)])

        await drain(app, slots=20)

        assert {State.DONE: 80} == await batch.counts()
        assert 5 == gauge.most.pop("all")
        assert {"a": 2, "b": 2, "c": 2, "d": 2} == gauge.most
