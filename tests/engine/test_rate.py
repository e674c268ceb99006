"""Rates that all runners share: never more than a bucket too much, and nearly all of it used."""

import asyncio
import time
from typing import Any

import pytest

from retoma import BadInput, Context, Retoma, State, db
from retoma.engine.errors import NotFound
from retoma.engine.ports import Clock
from retoma.engine.rate import Rates
from retoma.engine.store import rate
from retoma.engine.store.rate import Grant
from retoma.engine.testing import drain
from tests.engine import aids
from tests.engine.aids import AT_ONCE, eventually, running


async def test_e16_runners_together_keep_to_the_rate(database_url):
    async with Retoma(database_url) as app:
        await app.rates.set("site", 200, burst=20)
        database = await app.database()
        loop = asyncio.get_running_loop()
        calls: list[float] = []

        async def runner() -> None:
            rates = Rates(database, Clock())
            while len(calls) < 300:
                await rates.spend("site", 1)
                calls.append(loop.time())

        await asyncio.gather(*(runner() for _ in range(4)))

        # From the first call on: a machine that stands still for a moment makes calls late, not more.
        for n, at in enumerate(calls, start=1):
            assert n <= 200 * (at - calls[0]) + 20 + 1


async def test_d9_nothing_is_kept_of_rates_that_are_not_there(database_url):
    async with Retoma(database_url) as app:
        rates = Rates(await app.database(), Clock())
        for n in range(3):
            with pytest.raises(NotFound):
                await rates.spend(f"site {n}", 1)

        assert {} == rates._shares


async def test_e16_what_runners_have_in_hand_is_part_of_the_burst(database_url):
    """Four took some ahead; then the bucket is filled again: all together is one burst at most."""
    async with Retoma(database_url) as app:
        await app.rates.set("site", 50, burst=50)
        database = await app.database()

        def ask(tx: db.Transaction, wanted: int) -> Grant:
            return rate.reserve(tx, "site", wanted)

        ahead = [await database.write(lambda tx: ask(tx, 1), verb="test") for _ in range(4)]
        assert all(1 < grant.tokens <= 6 for grant in ahead)
        assert {0.1} == {grant.fresh for grant in ahead}
        await aids.change(database, "UPDATE rates SET tokens = 1000")

        full = await database.write(lambda tx: ask(tx, 1), verb="test")
        [left] = await aids.rows(database, "SELECT tokens FROM rates")
        assert full.tokens + left[0] <= 50 - 50 * full.fresh


async def test_e16_no_time_is_lost_between_counting_and_spending(database_url):
    """However slow a database answers, what it was counted up to is what is written."""
    async with Retoma(database_url) as app:
        await app.rates.set("site", 1, burst=10_000)
        database = await app.database()
        await aids.change(database, "UPDATE rates SET tokens = 2")
        [(since,)] = await aids.rows(database, "SELECT at FROM rates")

        def ask_slowly(tx: db.Transaction) -> Grant:
            return rate.reserve(SlowToSpend(tx), "site", 1)  # type: ignore[arg-type]

        grant = await database.write(ask_slowly, verb="test")

        [(left, at)] = await aids.rows(database, "SELECT tokens, at FROM rates")
        assert left + grant.tokens - 2 == pytest.approx(seconds(at, since), abs=1e-4)


class SlowToSpend:
    """A transaction between whose statements time passes."""

    def __init__(self, inner: db.Transaction) -> None:
        self.one = inner.one
        self._run = inner.run

    def run(self, statement: Any, **params: Any) -> int:
        time.sleep(0.2)  # noqa: TID251  # in the thread of the database
        return self._run(statement, **params)


def seconds(at: Any, since: Any) -> float:
    return float((at - since) / 1e6 if isinstance(at, int) else (at - since).total_seconds())


async def test_those_who_wait_are_served_together(database_url):
    """No round trip for each call: whoever waits in a runner gets its token with the first."""
    async with Retoma(database_url) as app:
        await app.rates.set("site", 1000, burst=100)
        counting = Counting(await app.database())
        rates = Rates(counting, Clock())  # type: ignore[arg-type]

        await asyncio.gather(*(rates.spend("site", 1) for _ in range(60)))

        assert counting.writes <= 10


class Counting:
    """A database that counts what is written."""

    def __init__(self, inner: db.Database) -> None:
        self._inner = inner
        self.writes = 0

    async def write(self, fn: Any, *, verb: str) -> Any:
        self.writes += 1
        return await self._inner.write(fn, verb=verb)


async def test_who_must_wait_long_waits_outside(database_url):
    async with Retoma(database_url) as app:
        await app.rates.set("slow", 0.1, burst=1)

        @app.job
        async def call(ctx: Context) -> None:
            await ctx.rate("slow")

        first, second = await app.submit(call), await app.submit(call)
        async with running(app):
            await eventually(lambda: waits_outside(app, second.id))

        done, waits = await app.get(first.id), await app.get(second.id)
        assert (State.DONE, State.WAITING) == (done.state, waits.state)
        assert 0 == waits.failures


async def waits_outside(app: Retoma, job: int) -> bool:
    return (await app.get(job)).run_at is not None


async def test_a_rate_can_be_changed_while_it_is_in_force(database_url):
    async with Retoma(database_url) as app:
        await app.rates.set("site", 1, burst=1)
        await app.rates.set("site", 500, burst=50)
        [seen] = await app.rates.list()
        assert ("site", 500, 50) == (seen.key, seen.per_second, seen.burst)


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), "5", True])
async def test_a_rate_that_makes_no_sense_is_refused(database_url, wrong):
    async with Retoma(database_url) as app:
        with pytest.raises(BadInput):
            await app.rates.set("site", wrong)
        assert [] == await app.rates.list()


@pytest.mark.parametrize("n", [0, -3, 1.5])
async def test_tokens_are_whole_and_more_than_none(database_url, n):
    async with Retoma(database_url) as app:
        await app.rates.set("site", 5)

        @app.job(retry=AT_ONCE)
        async def call(ctx: Context) -> None:
            await ctx.rate("site", n)

        job = await app.submit(call)
        await drain(app)
        assert (State.DEAD, "bad_input") == (
            (await app.get(job.id)).state,
            (await app.get(job.id)).code,
        )


async def test_more_than_the_burst_at_once_is_refused_and_does_not_wait_for_ever(database_url):
    async with Retoma(database_url) as app:
        await app.rates.set("site", 5, burst=5)

        @app.job(retry=AT_ONCE)
        async def call(ctx: Context) -> None:
            await ctx.rate("site", 6)

        job = await app.submit(call)
        await drain(app)
        assert "bad_input" == (await app.get(job.id)).code
