"""A service that is down costs nobody attempts; one canary finds out when it is back."""

import asyncio
from typing import Any, cast

import pytest

from retoma import BadInput, Batch, Context, NotFound, Permanent, Retoma, State, Transient
from retoma.engine.limits.breakers import Breakers
from retoma.engine.rules.errors import Throttled
from retoma.engine.testing import FakeClock, drain
from tests.engine.aids import AT_ONCE, eventually, rows, running


class Site:
    """Up or down."""

    def __init__(self, *, up: bool = False) -> None:
        self.up = up
        self.calls = 0

    async def call(self) -> None:
        self.calls += 1
        if not self.up:
            raise Transient("503", code="outage")


async def test_an_outage_costs_no_attempts_and_all_go_on_when_it_is_over(
    database_url, test_clock
):
    site = Site()
    async with Retoma(database_url) as app:
        await app.breakers.declare("site", threshold=3, rest=60)
        test_clock.jump(0)

        @app.job(retry=AT_ONCE)
        async def fetch(ctx: Context) -> None:
            async with ctx.breaker("site"):
                await site.call()

        batch = await app.submit_many(fetch, [None] * 20)
        async with running(app, tick=0.1):
            await eventually(lambda: all_aside(app, 20))
            called = site.calls
            assert called < 40, "nobody calls what is known to be down"
            [breaker] = await app.breakers.list()
            assert "open" == breaker.state
            assert "503" in str(breaker.reason)

            test_clock.jump(61)
            await eventually(lambda: probed(app, site, called))
            await eventually(lambda: all_aside(app, 20))
            assert called + 1 == site.calls, "one canary, and it found it down"

            site.up = True
            test_clock.jump(61)
            await eventually(lambda: all_done(batch, 20))

        assert {0} == {job.failures for job in await app.jobs(limit=50)}
        [breaker] = await app.breakers.list()
        assert ("closed", 0) == (breaker.state, breaker.failures)


async def all_aside(app: Retoma, n: int) -> bool:
    return n == sum(job.aside == "breaker:site" for job in await app.jobs(limit=50))


async def probed(app: Retoma, site: Site, called: int) -> bool:
    return site.calls > called


async def all_done(batch: Batch, n: int) -> bool:
    return {State.DONE: n} == await batch.counts()


async def test_an_outage_that_many_met_in_one_call_counts_once(database_url):
    asked: list[asyncio.Future[None]] = []
    async with Retoma(database_url) as app:
        await app.breakers.declare("site", threshold=3)

        async def shared() -> None:
            """The first five go in one call, which fails."""
            asked.append(asyncio.get_running_loop().create_future())
            if len(asked) == 5:
                error = Transient("503", code="outage")
                for each in asked:
                    each.set_exception(error)
            if len(asked) <= 5:
                await asked[len(asked) - 1]

        @app.job(retry=AT_ONCE)
        async def fetch(ctx: Context) -> None:
            async with ctx.breaker("site"):
                await shared()

        batch = await app.submit_many(fetch, [None] * 5)
        await drain(app)

        assert await all_done(batch, 5)
        told = await rows(await app.database(), "SELECT verb FROM audit")
        assert ("breaker.opened",) not in told
        assert 10 == len(asked)


async def test_d9_of_jobs_that_never_get_through_the_latest_are_remembered(monkeypatch):
    monkeypatch.setattr("retoma.engine.limits.breakers.MOST_BLAMED", 3)
    breakers = Breakers(cast("Any", None), FakeClock())

    told = [breakers.blame(job, "site") for job in (1, 2, 2, 3, 4, 2, 1)]

    assert [1, 1, 2, 1, 1, 3, 1] == told, "the first was forgotten by the fourth"
    assert 3 == len(breakers._blamed)


async def test_an_answer_that_is_no_outage_is_the_jobs_own(database_url):
    async with Retoma(database_url) as app:
        await app.breakers.declare("site", threshold=1)

        @app.job
        async def fetch(ctx: Context) -> None:
            async with ctx.breaker("site"):
                raise Permanent("no such page", code="NOT_FOUND")

        job = await app.submit(fetch)
        await drain(app)

        assert "NOT_FOUND" == (await app.get(job.id)).code
        assert "closed" == (await app.breakers.list())[0].state


async def test_a_breaker_is_opened_and_closed_by_hand(database_url):
    site = Site(up=True)
    async with Retoma(database_url) as app:
        await app.breakers.declare("site", rest=3600)
        await app.breakers.open("site", "they asked us to wait")

        @app.job
        async def fetch(ctx: Context) -> None:
            async with ctx.breaker("site"):
                await site.call()

        job = await app.submit(fetch)
        async with running(app):
            await eventually(lambda: all_aside(app, 1))
            assert 0 == site.calls
            await app.breakers.close("site")
            await eventually(lambda: ended(app, job.id))
        assert 1 == site.calls


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).ended


async def test_a_canary_that_dies_makes_room_for_another(database_url, test_clock):
    site = Site()
    async with Retoma(database_url) as app:
        await app.breakers.declare("site", threshold=1, rest=1)
        test_clock.jump(0)
        hang = asyncio.Event()

        @app.job(retry=AT_ONCE)
        async def fetch(ctx: Context, hangs: bool) -> None:
            async with ctx.breaker("site"):
                if site.up and hangs:
                    hangs_now.set()
                    await hang.wait()
                await site.call()

        hangs_now = asyncio.Event()
        first = await app.submit(fetch, True)
        async with running(app, tick=0.1):
            await eventually(lambda: all_aside(app, 1))
            site.up = True
            test_clock.jump(2)
            await asyncio.wait_for(hangs_now.wait(), 20)
            await app.cancel(first.id)
            await eventually(lambda: ended(app, first.id))
            second = await app.submit(fetch, False)
            await eventually(lambda: ended(app, second.id))
        assert State.DONE is (await app.get(second.id)).state


@pytest.mark.parametrize(
    "how", [{"threshold": 0}, {"rest": 0}, {"rest": -1}, {"threshold": 1.5}]
)
async def test_a_breaker_that_makes_no_sense_is_refused(database_url, how):
    async with Retoma(database_url) as app:
        with pytest.raises(BadInput):
            await app.breakers.declare("site", **how)
        with pytest.raises(NotFound):
            await app.breakers.open("site", "why not")
        with pytest.raises(NotFound):
            await app.breakers.close("site")


async def test_a_breaker_is_not_opened_without_a_reason(database_url):
    async with Retoma(database_url) as app:
        await app.breakers.declare("site")
        for reason in ("", " ", "a\0b"):
            with pytest.raises(BadInput):
                await app.breakers.open("site", reason)
        assert "closed" == (await app.breakers.list())[0].state


async def test_a_call_that_an_adaptive_rate_has_heard_of_is_no_outage(database_url):
    """Whoever was one too many waits as long as the service asks, and says in its timeline for what."""
    async with Retoma(database_url, clock=FakeClock()) as app:
        await app.breakers.declare("site", threshold=1)
        await app.rates.set("site", 100)
        refusals = [Throttled("slow down", retry_after=30)]

        @app.job(retry=AT_ONCE)
        async def fetch(ctx: Context) -> None:
            async with ctx.breaker("site"), ctx.rate("site", adaptive=True):
                if refusals:
                    raise refusals.pop()

        job = await app.submit(fetch)
        await drain(app)

        [breaker] = await app.breakers.list()
        assert ("closed", 0) == (breaker.state, breaker.failures)
        [snoozed] = [each for each in await app.events(job.id) if each.type == "snoozed"]
        assert {"after": 30.0, "code": "throttled", "message": "slow down"} == snoozed.details
        assert (State.DONE, 0) == (
            (await app.get(job.id)).state,
            (await app.get(job.id)).failures,
        )


async def test_without_an_adaptive_rate_it_counts_and_the_wait_is_kept_all_the_same(
    database_url,
):
    async with Retoma(database_url, clock=FakeClock()) as app:
        await app.breakers.declare("site", threshold=3)
        refusals = [Throttled("slow down", retry_after=30)]

        @app.job(retry=AT_ONCE)
        async def fetch(ctx: Context) -> None:
            async with ctx.breaker("site"):
                if refusals:
                    raise refusals.pop()

        job = await app.submit(fetch)
        await drain(app)

        [snoozed] = [each for each in await app.events(job.id) if each.type == "snoozed"]
        assert (30.0, "throttled") == (snoozed.details["after"], snoozed.details["code"])
