"""Rates that all runners share: never more than a bucket too much, and nearly all of it used."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from retoma import BadInput, Context, Retoma, State, db
from retoma.engine.limits.rates import Rates
from retoma.engine.ports import Clock
from retoma.engine.rules.adaptive_rate import START
from retoma.engine.rules.errors import NotFound, Throttled
from retoma.engine.rules.outcome import Snooze, Unwound
from retoma.engine.store import rate
from retoma.engine.store.rate import Grant
from retoma.engine.testing import FakeClock, drain
from tests.engine import aids
from tests.engine.aids import AT_ONCE, eventually, running
from tests.engine.rules.test_adaptive_rate import Service


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


# --- Rates that nobody has set


class Idle:
    """A database that says when nobody asks it anything."""

    def __init__(self, inner: db.Database) -> None:
        self._inner = inner
        self._busy = 0
        self.writes = 0
        self.idle = asyncio.Event()
        self.idle.set()

    async def write(self, fn: Any, *, verb: str) -> Any:
        self.writes += 1
        self._busy += 1
        self.idle.clear()
        try:
            return await self._inner.write(fn, verb=verb)
        finally:
            self._busy -= 1
            if not self._busy:
                self.idle.set()

    async def settled(self) -> None:
        """Everybody sleeps, or waits for somebody who does."""
        quiet = 0
        while quiet < 10:
            quiet = quiet + 1 if self.idle.is_set() else 0
            await self.idle.wait()
            await asyncio.sleep(0)


async def play(
    clock: FakeClock, database: Idle, runners: Sequence[Rates], service: Service, end: float
) -> tuple[int, int]:
    """Both runners want more than there is; how many calls the service took, and how many it refused."""
    took = refused = 0

    async def caller(rates: Rates) -> None:
        nonlocal took, refused
        while True:
            try:
                async with rates.permit("service", 1, adaptive=True):
                    if not service.takes(clock.now()):
                        refused += 1
                        raise Throttled("429", retry_after=1.0)
                    took += 1
                    await clock.sleep(0.2)
            except Throttled:
                continue
            except Unwound as left:
                await clock.sleep(cast("Snooze", left.outcome).after)

    callers = [asyncio.ensure_future(caller(rates)) for rates in runners for _ in range(4)]
    try:
        while True:
            await database.settled()
            wait = clock.next_wake
            assert wait is not None, [task for task in callers if task.done()]
            if clock.now() + wait >= end:
                return took, refused
            clock.advance(max(wait, 0.001))
    finally:
        for task in callers:
            task.cancel()
        await asyncio.gather(*callers, return_exceptions=True)


async def test_two_runners_find_a_limit_that_changes_twice_in_five_minutes(database_url):
    """Nobody has set a rate: of all calls 5 % are refused at most, and 85 % of the limit is used."""
    clock = FakeClock()
    limits = [(100.0, 4.0), (200.0, 2.0), (300.0, 5.0)]
    async with Retoma(database_url, clock=clock) as app:
        database = Idle(await app.database())
        runners = [Rates(database, clock, name) for name in ("one", "two")]  # type: ignore[arg-type]

        took, refused = await play(clock, database, runners, Service(limits), 299.9)
        print("SHOW", took, refused, database.writes)

        assert refused <= 0.05 * (took + refused)
        assert 0.85 * sum(100 * limit for _, limit in limits) <= took
        [seen] = await app.rates.list()
        assert (True, None, refused) == (seen.adaptive, seen.bound, seen.refused)
        assert 4 <= seen.per_second <= 7
        # A write for each call, and for each wait: two runners wake for one token, at most.
        assert database.writes <= 4 * (took + refused)
        # What people find in the audit log is where it went, not each step on the way.
        lines = await aids.rows(
            await app.database(), "SELECT subject FROM audit WHERE verb = 'rate.adapted'"
        )
        assert 2 <= len(lines) <= 20


async def refuse(rates: Rates, asks: float | None = None, n: int = 1) -> None:
    with pytest.raises(Throttled):
        async with rates.permit("service", n, adaptive=True):
            raise Throttled("429", retry_after=asks)


async def call(rates: Rates) -> None:
    async with rates.permit("service", 1, adaptive=True):
        pass


@asynccontextmanager
async def two_runners(database_url: str) -> AsyncIterator[tuple[Retoma, Rates, Rates]]:
    clock = FakeClock()
    async with Retoma(database_url, clock=clock) as app:
        database = await app.database()
        yield app, Rates(database, clock, "one"), Rates(database, clock, "two")


async def test_nobody_calls_before_the_time_that_the_service_asked_for(database_url):
    async with two_runners(database_url) as (app, one, two):
        await refuse(one, asks=60.0)

        with pytest.raises(Unwound) as left:
            await call(two)

        assert 60 <= cast("Snooze", left.value.outcome).after <= 62
        [seen] = await app.rates.list()
        assert seen.paused_until is not None
        assert [("service: 60 s",)] == await aids.rows(
            await app.database(), "SELECT subject FROM audit WHERE verb = 'rate.paused'"
        )


@pytest.mark.parametrize(("asks", "waits"), [(1e9, 900.0), (-5.0, 1.0), (float("nan"), 1.0)])
async def test_what_a_service_asks_for_is_bounded(database_url, asks, waits):
    async with two_runners(database_url) as (app, one, _):
        await refuse(one, asks)
        [(now, until)] = await aids.rows(
            await app.database(), "SELECT (SELECT clock()), at FROM rates"
        )
        paused = seconds(until, now)
        assert waits - 1 <= paused <= waits


async def test_a_person_who_sets_the_rate_ends_the_pause_and_bounds_it(database_url):
    async with two_runners(database_url) as (app, one, two):
        await refuse(one, asks=600.0)
        await app.rates.set("service", 3, burst=3)
        cast("FakeClock", one.clock).advance(1.0)

        await call(two)

        [seen] = await app.rates.list()
        assert (3, 3, None) == (seen.per_second, seen.bound, seen.paused_until)


async def test_refusals_of_one_moment_cut_the_rate_once(database_url):
    async with two_runners(database_url) as (app, one, _):
        await app.rates.set("service", 100, burst=100)
        counting = Counting(await app.database())
        one._database = counting  # type: ignore[assignment]

        permits = [one.permit("service", 1, adaptive=True) for _ in range(20)]
        await asyncio.gather(*(each.__aenter__() for each in permits))
        reserved = counting.writes
        await asyncio.gather(
            *(each.__aexit__(None, Throttled("429"), None) for each in permits)
        )

        [seen] = await app.rates.list()
        assert (20, 65) == (seen.refused, seen.per_second)
        assert counting.writes <= reserved + 2, "reported together"


async def test_calls_permitted_under_an_older_rate_say_nothing_of_the_new_one(database_url):
    async with two_runners(database_url) as (app, one, two):
        await app.rates.set("service", 100, burst=100)
        late = two.permit("service", 1, adaptive=True)
        await late.__aenter__()
        await refuse(one)
        await late.__aexit__(None, Throttled("429"), None)
        [seen] = await app.rates.list()
        assert (2, 65) == (seen.refused, seen.per_second)


async def test_a_rate_that_a_person_set_is_where_it_begins_and_costs_nothing_more(database_url):
    async with two_runners(database_url) as (app, one, _):
        await app.rates.set("service", 1000, burst=100)
        one._database = counting = Counting(await app.database())  # type: ignore[assignment]
        await asyncio.gather(*(call(one) for _ in range(60)))
        assert counting.writes <= 10
        [seen] = await app.rates.list()
        assert (1000, 100, None) == (seen.per_second, seen.burst, seen.ceiling)


async def test_a_rate_that_came_with_an_application_is_only_the_most(database_url):
    """Nobody has set it: it is looked for from slow to fast, up to there."""
    async with two_runners(database_url) as (app, one, _):
        await app.rates.set("service", 50)
        await aids.change(await app.database(), "UPDATE rates SET bound = NULL")
        await call(one)
        [seen] = await app.rates.list()
        assert (START, 50) == (seen.per_second, seen.bound)


async def test_a_runner_that_dies_with_tokens_takes_nothing_along(database_url):
    async with two_runners(database_url) as (app, one, two):
        await app.rates.set("service", 10, burst=10)
        database = await app.database()
        ahead = await database.write(lambda tx: rate.reserve(tx, "service", 10), verb="test")
        assert 10 == ahead.tokens
        clock = cast("FakeClock", one.clock)
        clock.advance(1.1)
        for _ in range(9):  # the tenth is what may be reserved ahead
            await asyncio.wait_for(call(two), 5)


async def test_what_the_service_said_is_what_the_job_hears_if_it_cannot_be_reported(
    database_url,
):
    """The report comes with the next one."""
    async with two_runners(database_url) as (app, one, _):
        await app.rates.set("service", 100, burst=100)
        database = await app.database()
        one._database = Deaf(database, at="report_rate")  # type: ignore[assignment]
        await refuse(one)
        assert 0 == (await app.rates.list())[0].refused

        one._database = database
        await refuse(one)
        assert 2 == (await app.rates.list())[0].refused


class Deaf:
    """A database that does not answer one verb."""

    def __init__(self, inner: db.Database, at: str) -> None:
        self._inner = inner
        self._at = at

    async def write(self, fn: Any, *, verb: str) -> Any:
        if verb == self._at:
            raise db.DatabaseError("away")
        return await self._inner.write(fn, verb=verb)


async def test_many_runners_that_are_refused_at_once_lock_one_row_in_turn(database_url):
    """No deadlock, no lost update: each refusal is counted."""
    async with Retoma(database_url) as app:
        database = await app.database()
        await app.rates.set("service", 1000, burst=100)
        runners = [Rates(database, Clock(), f"runner {n}") for n in range(8)]
        permits = [
            each.permit("service", 1, adaptive=True) for each in runners for _ in range(10)
        ]
        await asyncio.gather(*(each.__aenter__() for each in permits))
        await asyncio.gather(
            *(each.__aexit__(None, Throttled("429"), None) for each in permits)
        )
        [seen] = await app.rates.list()
        assert (80, 650) == (seen.refused, seen.per_second)


async def test_without_a_breaker_a_refused_call_is_a_failed_attempt_with_its_cause(
    database_url,
):
    async with Retoma(database_url, clock=FakeClock()) as app:
        refusals = iter([Throttled("slow down", retry_after=30), None])

        @app.job
        async def ask(ctx: Context) -> int:
            async with ctx.rate("service", adaptive=True):
                if (refusal := next(refusals)) is not None:
                    raise refusal
            return ctx.attempt

        job = await app.submit(ask)
        await drain(app)
        done = await app.get(job.id)
        assert (State.DONE, 2) == (done.state, await app.result(job.id))
        [seen] = await app.rates.list()
        assert 1 == seen.refused
