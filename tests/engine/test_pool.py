"""Things that must not be shared: one holder at a time, by the fence of the job that holds them."""

import asyncio
from typing import Any

import pytest

from retoma import BadInput, Context, NotFound, Retoma, Snooze, State, Transient
from retoma.codec import Unstorable
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE, eventually, running


async def holders(app: Retoma, pool: str = "proxies") -> dict[str, int | None]:
    return {item.name: item.job for item in await app.pools.items(pool)}


async def test_e17_a_thing_has_one_holder_and_the_others_wait_outside(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2})
        inside: set[str] = set()
        seen: list[int] = []

        @app.job
        async def scrape(ctx: Context) -> None:
            async with ctx.use("proxies") as proxy:
                assert proxy.name not in inside
                inside.add(proxy.name)
                seen.append(len(inside))
                await asyncio.sleep(0.01)
                inside.discard(proxy.name)

        batch = await app.submit_many(scrape, [None] * 20)
        await drain(app)

        assert {State.DONE: 20} == await batch.counts()
        assert 2 == max(seen)
        assert {"a": None, "b": None} == await holders(app)
        jobs = await app.jobs(limit=50)
        assert {0} == {job.failures for job in jobs}, "to wait for a pool costs no attempt"


async def test_what_waits_for_a_pool_says_so(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})
        gate = asyncio.Event()

        @app.job
        async def scrape(ctx: Context) -> None:
            async with ctx.use("proxies"):
                await gate.wait()

        await app.submit_many(scrape, [None] * 2)
        async with running(app):
            [waiting] = await eventually(lambda: aside(app))
            assert "pool:proxies" == waiting
            gate.set()


async def aside(app: Retoma) -> list[str]:
    return [job.aside for job in await app.jobs() if job.aside is not None]


async def test_e17_a_hold_of_the_job_survives_its_attempts_and_ends_with_it(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2})
        had: list[str] = []

        @app.job(retry=AT_ONCE)
        async def scrape(ctx: Context) -> Any:
            proxy = await ctx.use("proxies", scope="job")
            had.append(proxy.name)
            if len(had) == 1:
                raise Transient("again")
            return Snooze(0) if len(had) == 2 else proxy.name

        await app.submit(scrape)
        await drain(app)
        assert 1 == len(set(had)), "the same thing over a failure and a snooze"
        assert 3 == len(had)

        taken: list[str] = []

        @app.job
        async def other(ctx: Context) -> None:
            first = await ctx.use("proxies", scope="job")
            taken.append(first.name)

        await app.submit_many(other, [None] * 2)
        await drain(app)
        assert {"a", "b"} == set(taken), "what the first job held is free again"


async def test_e17_a_hold_until_release_outlives_the_job(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1})

        @app.job
        async def scrape(ctx: Context) -> None:
            await ctx.use("proxies", scope="release")

        first, second = await app.submit(scrape), await app.submit(scrape)
        async with running(app):
            await eventually(lambda: aside(app))
            assert {"a": first.id} == await holders(app)
            await app.pools.declare_free("proxies", "a")
            await eventually(lambda: done(app, second.id))
        assert {"a": second.id} == await holders(app)


async def done(app: Retoma, job: int) -> bool:
    return (await app.get(job)).state is State.DONE


async def test_one_bad_hand_does_not_empty_a_pool(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {n: n for n in "abcd"}, off_after=2)

        @app.job
        async def scrape(ctx: Context, hand: str) -> None:
            proxy = await ctx.use("proxies", scope="release")
            await proxy.release(worked=hand == "good", by=hand)

        for _ in range(40):
            await app.submit(scrape, "bad worker")
            await app.submit(scrape, "good")
        await drain(app)
        assert {"on"} == {item.state for item in await app.pools.items("proxies")}


async def test_a_vendors_outage_switches_nothing_off(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {n: n for n in "abcd"}, off_after=2)

        @app.job
        async def scrape(ctx: Context, hand: str) -> None:
            proxy = await ctx.use("proxies", scope="release")
            await proxy.release(worked=False, by=hand)

        for n in range(40):
            await app.submit(scrape, f"worker {n % 5}")
        await drain(app)
        assert {"on"} == {item.state for item in await app.pools.items("proxies")}


async def test_a_thing_that_fails_in_many_hands_is_switched_off_with_a_reason(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"bad": 1, "good": 2}, off_after=3, healthy=1)

        @app.job
        async def scrape(ctx: Context, hand: str) -> None:
            proxy = await ctx.use("proxies", scope="release")
            await proxy.release(worked=proxy.name == "good", by=hand)

        for n in range(20):
            await app.submit(scrape, f"worker {n}")
            await drain(app)

        items = {item.name: item for item in await app.pools.items("proxies")}
        assert ("off", "on") == (items["bad"].state, items["good"].state)
        assert "failed" in str(items["bad"].reason)

        await app.pools.switch("proxies", ["bad"], on=True, reason="repaired")
        assert {"on"} == {item.state for item in await app.pools.items("proxies")}


async def test_not_the_last_one_if_there_is_another(database_url):
    async with Retoma(database_url) as app:
        await app.pools.declare("proxies", {"a": 1, "b": 2}, pick="random")
        had: list[str] = []

        @app.job(retry=AT_ONCE)
        async def scrape(ctx: Context) -> Any:
            async with ctx.use("proxies") as proxy:
                had.append(proxy.name)
            return Snooze(0) if len(had) < 6 else None

        await app.submit(scrape)
        await drain(app)
        assert had[0] != had[1] != had[2] != had[3] != had[4] != had[5]


@pytest.mark.parametrize(
    "how",
    [
        {"pick": "best"},
        {"use_cap": 0},
        {"use_cap": -1},
        {"cool_down": -1},
        {"off_after": 1.5},
        {"healthy": -1},
        {"items": {"": 1}},
        {"items": {"a": float("nan")}},
    ],
)
async def test_a_pool_that_makes_no_sense_is_refused(database_url, how):
    async with Retoma(database_url) as app:
        with pytest.raises((BadInput, Unstorable)):
            await app.pools.declare("proxies", **how)
        assert [] == await app.pools.list()


async def test_an_unknown_pool_is_said_to_be_unknown(database_url):
    async with Retoma(database_url) as app:
        with pytest.raises(NotFound):
            await app.pools.items("none")
        with pytest.raises(NotFound):
            await app.pools.switch("none", ["a"], on=True, reason="why not")

        @app.job(retry=AT_ONCE)
        async def scrape(ctx: Context) -> None:
            await ctx.use("none")

        job = await app.submit(scrape)
        await drain(app)
        assert State.DEAD is (await app.get(job.id)).state
