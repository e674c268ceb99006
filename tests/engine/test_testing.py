"""What tests of stories are given."""

import asyncio

import pytest

from retoma import Context, Retoma, Snooze, State
from retoma.db import crashpoint
from retoma.db.crashpoint import Injected
from retoma.engine.testing import FakeClock, crash_at, drain


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
    with crash_at("there"):
        pass

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
