"""What tests of stories are given."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from retoma import Context, Retoma, Retry, Snooze, State, Transient, testing
from retoma.db import crashpoint, moment
from retoma.db.crashpoint import Injected
from retoma.engine.testing import FakeClock, crash_at, drain
from tests.engine.aids import rows


async def test_a_fake_clock_wakes_who_has_slept_long_enough_and_nobody_else():
    clock = FakeClock(100.0)
    short = asyncio.create_task(clock.sleep(10))
    long = asyncio.create_task(clock.sleep(20))
    await asyncio.sleep(0)

    clock.advance(9.5)
    await asyncio.sleep(0)
    early = clock.asleep, short.done()
    clock.advance(0.5)
    await short

    assert (2, False) == early
    assert (1, False, 110.0) == (clock.asleep, long.done(), clock.now())
    long.cancel()


def test_a_crash_point_does_harm_once_and_only_inside_its_block():
    with crash_at("here", on_pass=2):
        crashpoint("here")
        with pytest.raises(Injected, match="here"):
            crashpoint("here")
        crashpoint("here")


def test_a_crash_that_never_came_is_told():
    with (
        pytest.raises(AssertionError, match="nothing passed there 2 times"),
        crash_at("there", on_pass=2),
    ):
        crashpoint("there")

    crashpoint("there")


def test_a_crash_point_is_disarmed_also_when_the_block_ends_badly():
    with pytest.raises(RuntimeError), crash_at("here"):
        raise RuntimeError("something else")

    crashpoint("here")


def test_an_unknown_harm_is_refused_before_anything_is_armed():
    with pytest.raises(ValueError, match="pinch"), crash_at("here", "pinch"):
        pass

    crashpoint("here")


async def test_a_drain_runs_everything_and_comes_back(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context, n: int) -> int:
            return n

        batch = await app.submit_many(story, range(7))
        await drain(app)

        assert {State.DONE: 7} == await batch.counts()


async def test_a_drain_that_does_not_end_says_so(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> Snooze:
            return Snooze(3600)

        await app.submit(story)

        with pytest.raises(AssertionError, match=r"jobs were still open after 0.5 s"):
            await drain(app, within=0.5)


async def test_with_a_fake_clock_nobody_waits_for_snoozes_and_retries(database_url):
    async with Retoma(database_url, clock=FakeClock()) as app:

        @app.job(retry=Retry(attempts=3, base=3600, cap=86_400, jitter=0))
        async def story(ctx: Context) -> Any:
            if ctx.epoch <= 2:
                return Snooze(7200)
            if ctx.epoch == 3:
                raise Transient("not now")
            return "done"

        job = await app.submit(story, delay="30d")
        async with asyncio.timeout(60):
            await drain(app)

        found = await app.get(job.id)
        assert (State.DONE, 4) == (found.state, found.epoch)
        first, *_, last = await app.events(job.id)
        assert timedelta(days=30, hours=5) <= last.at - first.at < timedelta(days=30, hours=5.1)


async def test_a_fake_clock_moves_the_time_of_its_apps_database_and_of_no_other(database_url):
    clock = FakeClock()
    async with Retoma(database_url, clock=clock) as app, Retoma(database_url) as other:
        before = await told(app)
        clock.advance(3600)
        after, elsewhere = await told(app), await told(other)

        hour = timedelta(hours=1)
        assert hour <= after - before < hour * 1.1
        assert elsewhere - before < hour / 2


async def told(app: Retoma) -> datetime:
    """The time by the app's database."""
    [(now,)] = await rows(await app.database(), "SELECT (SELECT clock())")
    at: datetime = moment(now)
    return at


async def test_whoever_waits_for_a_batch_by_a_fake_clock_is_woken_by_a_drain(database_url):
    async with Retoma(database_url, clock=FakeClock()) as app:

        @app.job
        async def story(ctx: Context, n: int) -> int:
            return n

        batch = await app.submit_many(story, range(3), delay="1h")
        progress, _ = await asyncio.gather(batch.wait(), drain(app))

        assert {State.DONE: 3} == progress.counts


async def test_a_step_that_was_saved_before_the_crash_is_not_run_again(database_url):
    ran = []
    async with Retoma(database_url, clock=FakeClock()) as app:

        @app.job
        async def story(ctx: Context) -> None:
            for name in ("one", "two"):
                await ctx.step(name, step, name)

        async def step(name: str) -> None:
            ran.append(name)

        await app.submit(story)
        with crash_at("step.after_function", on_pass=2):
            await drain(app)

        assert ["one", "two", "two"] == ran


def test_the_door_for_tests_has_everything():
    assert (FakeClock, crash_at, drain) == (
        testing.FakeClock,
        testing.crash_at,
        testing.drain,
    )
    assert sorted(testing.__all__) == testing.__all__
