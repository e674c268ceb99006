"""A runner: claims jobs, runs them, gives them back when it must."""

import asyncio
import gc
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from bench.statements import listed
from retoma import BadInput, Context, Retoma, Retry, State, Transient
from retoma.db import Database, adhoc, crashpoint
from retoma.engine import store
from retoma.engine.ports import Clock
from retoma.engine.rules.job import Claim
from retoma.engine.run.runner import Runner, RunnerParts
from retoma.engine.run.runner_options import RunnerOptions
from retoma.engine.testing import crash_at, drain
from tests.engine.aids import AT_ONCE, change, eventually, rows, running


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).ended


class Counting:
    """A database that counts how often it is asked, and what for."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def write(self, fn: Callable[..., Any], *, verb: str, **how: Any) -> Any:
        self.asked[verb] += 1
        return await self._database.write(fn, verb=verb, **how)

    async def read(self, fn: Callable[..., Any], **how: Any) -> Any:
        self.asked["read"] += 1
        return await self._database.read(fn, **how)

    def write_now(self, fn: Callable[..., Any], *, verb: str) -> Any:
        self.asked[verb] += 1
        return self._database.write_now(fn, verb=verb)


# --- when it looks


async def test_an_idle_runner_starts_a_submitted_job_without_waiting_for_its_tick(database_url):
    async with Retoma(database_url) as app, Retoma(database_url) as elsewhere:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return n

        elsewhere.kinds.add(work.kind)  # type: ignore[attr-defined]
        async with running(app, tick=60):
            first = await app.submit(work, 1)
            await eventually(lambda: ended(app, first.id))
            await asyncio.sleep(0.05)
            second = await elsewhere.submit(work, 2)
            await eventually(lambda: ended(app, second.id))
            third = await elsewhere.submit_many(work, [3, 4])
            async with asyncio.timeout(60):
                await third.wait()


async def test_what_becomes_due_is_started_without_waiting_for_the_tick(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(base=0.2, cap=0.2, jitter=0))
        async def work(ctx: Context) -> None:
            if ctx.attempt == 1:
                raise Transient("again")

        async with running(app, tick=60):
            retried, later = await app.submit(work), await app.submit(work, delay=0.3)
            await eventually(lambda: ended(app, retried.id))
            await eventually(lambda: ended(app, later.id))

        for job in (retried, later):
            found = await app.get(job.id)
            first, second = await app.attempts(job.id)
            assert State.DONE is found.state
            assert first.ended_at is not None
            # A statement asks the clock more than once: a move is told a moment after it was decided.
            assert (second.claimed_at - first.ended_at).total_seconds() >= 0.19


async def test_an_idle_runner_sends_less_than_30_statements_a_minute(database_url, test_clock):
    """All duties held, default settings; by the drivers' own count, BEGIN and COMMIT as well."""
    passed: set[str] = set()
    with listed() as sent:
        async with Retoma(database_url) as app:

            @app.job
            async def work(ctx: Context) -> None: ...

            database = Counting(await app.database())
            test_clock.jump(0)
            runner = Runner(
                RunnerParts(database=database, kinds=app.kinds, options=RunnerOptions())
            )
            task = asyncio.create_task(runner.run())
            crashpoint.on_pass = passed.add
            await retired(runner, database, test_clock, passed)
            crashpoint.on_pass = None

            before, asked = len(sent), Counter(database.asked)
            for n in range(1, 13):
                asked["read"] += 1
                asked["beat"] += n % 2 == 0
                test_clock.jump(5)
                await eventually(lambda: told_at_least(asked, runner, database))
            await eventually(lambda: sent_at_least(sent, before + 18))  # the last is on its way
            minute = sent[before:]
            late = await app.submit(work, delay=7)
            test_clock.jump(7)
            await woken(runner, database)
            await eventually(lambda: ended(app, late.id))
            runner.stop()
            await task

    assert 18 <= len(minute) < 30, minute


async def sent_at_least(sent: Sequence[str], many: int) -> bool:
    return len(sent) >= many


async def told_at_least(asked: "Counter[str]", runner: Runner, database: Any) -> bool:
    await woken(runner, database)
    return bool(asked <= database.asked)


async def retired(runner: Runner, database: Any, clock: Any, passed: set[str]) -> None:
    """It has its duties, and has done each of them once."""

    async def done() -> bool:
        if runner._instance is not None:
            clock.jump(1)
            await woken(runner, database)
        return "retire.after_commit" in passed

    await eventually(done)


async def woken(runner: Runner, database: Any) -> None:
    """The runner and its pulse have looked at the clock once more."""
    instance = runner._instance
    assert instance is not None
    instance._signals.wake.set()
    database.wake()

    async def looked() -> bool:
        return not instance._signals.wake.is_set()

    await eventually(looked)
    await asyncio.sleep(0.02)


async def test_until_idle_waits_for_retries_and_leaves_when_nothing_is_open(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(base=0.1, cap=0.1))
        async def work(ctx: Context, n: int) -> int:
            if n % 2 and ctx.attempt < 3:
                raise Transient("odd")
            return n

        batch = await app.submit_many(work, range(20))
        await drain(app, slots=5)

        assert {State.DONE: 20} == await batch.counts()
        assert ["gone"] == [runner.state for runner in await app.runners.list()]


async def test_a_runner_with_nothing_to_do_is_idle_at_once(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context) -> None: ...

        await drain(app, within=10, tick=60)


# --- what it takes


async def test_a_runner_never_takes_a_kind_or_version_it_does_not_know(database_url):
    async with Retoma(database_url) as old, Retoma(database_url) as new:

        @old.job(queue="shared")
        async def work(ctx: Context) -> str:
            return "old"

        @new.job(name="work", version=2, queue="shared")
        async def work_2(ctx: Context) -> str:
            return "new"

        @new.job(queue="shared")
        async def other(ctx: Context) -> str:
            return "other"

        strange = [await new.submit(work_2), await new.submit(other)]
        known = await old.submit(work)
        async with running(old):
            await eventually(lambda: ended(old, known.id))
            await asyncio.sleep(0.1)
        untouched = [await old.get(job.id) for job in strange]
        await drain(new)

        assert [(State.WAITING, 0)] * 2 == [(job.state, job.epoch) for job in untouched]
        assert ['"new"', '"other"'] == [(await new.get(job.id)).result for job in strange]


async def test_a_runner_runs_no_more_stories_at_once_than_it_has_slots(database_url):
    async with Retoma(database_url) as app:
        now = most = 0
        together = asyncio.Event()

        @app.job
        async def work(ctx: Context, n: int) -> None:
            nonlocal now, most
            now += 1
            most = max(most, now)
            if now == 2:
                together.set()
            await together.wait()
            await asyncio.sleep(0.01)
            now -= 1

        batch = await app.submit_many(work, range(40))
        async with asyncio.timeout(60):
            await drain(app, slots=6)

        assert {State.DONE: 40} == await batch.counts()
        assert 2 <= most <= 6


async def test_e10_a_runner_holds_one_suspect_at_a_time_beside_others(database_url):
    async with Retoma(database_url) as app:
        suspects = most = beside = 0
        suspected, met = asyncio.Event(), asyncio.Event()

        @app.job
        async def work(ctx: Context, n: int) -> None:
            nonlocal suspects, most, beside
            if n >= 4:
                await suspected.wait()
                beside += suspects
                if beside:
                    met.set()
                await asyncio.sleep(0.01)
                return
            suspects += 1
            most = max(most, suspects)
            suspected.set()
            await met.wait()
            await asyncio.sleep(0.03)
            suspects -= 1

        batch = await app.submit_many(work, range(24))
        await change(await app.database(), "UPDATE jobs SET lost = 2 WHERE id <= 4")
        async with asyncio.timeout(60):
            await drain(app, slots=3)

        assert {State.DONE: 24} == await batch.counts()
        assert 1 == most
        assert beside > 0


async def test_a_suspect_beside_full_slots_does_not_stop_the_runner(database_url):
    async with Retoma(database_url) as app:
        together, go_on = asyncio.Event(), asyncio.Event()
        now = 0

        @app.job
        async def work(ctx: Context, n: int) -> None:
            nonlocal now
            now += 1
            if now == 2:
                together.set()
            await go_on.wait()

        await app.submit_many(work, range(2))
        await change(await app.database(), "UPDATE jobs SET lost = 2 WHERE id = 1")
        async with running(app, slots=1):
            async with asyncio.timeout(60):
                await together.wait()
                late = await app.submit(work, 3)
                await asyncio.sleep(0.1)
            waiting = await app.get(late.id)
            go_on.set()
            await eventually(lambda: ended(app, late.id))

        assert State.WAITING is waiting.state


async def test_two_runners_share_the_work_and_no_job_is_run_twice(database_url):
    async with Retoma(database_url) as one, Retoma(database_url) as two:
        ran: list[int] = []
        both = asyncio.Event()

        @one.job
        async def work(ctx: Context, n: int) -> None:
            ran.append(n)
            if len(ran) > 5:  # more than one of them has slots
                both.set()
            await both.wait()

        two.kinds.add(work.kind)  # type: ignore[attr-defined]
        await one.submit_many(work, range(100))
        async with asyncio.timeout(60):
            await asyncio.gather(drain(one, slots=5), drain(two, slots=5))

        assert list(range(100)) == sorted(ran)
        [[n]] = await rows(
            await one.database(),
            "SELECT count(DISTINCT actor) FROM events WHERE type = 'claimed'",
        )
        assert 2 == n


# --- when the database answers late, or not at all


@pytest.mark.parametrize("verb", ["tick", "claim"])
async def test_e7_a_claim_whose_answer_was_lost_is_found_and_run_under_its_epoch(
    database_url, verb
):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return n

        first = await app.submit(work, 0)
        with crash_at(f"{verb}.after_commit", "reply_lost"):
            async with running(app, tick=60):
                await eventually(lambda: ended(app, first.id))
                second = await app.submit(work, 1)
                await eventually(lambda: ended(app, second.id))

        for job in (first, second):
            assert ["submitted", "claimed", "done"] == [
                e.type for e in await app.events(job.id)
            ]


class Recalling(Counting):
    """A database whose answer to "what do I hold?" arrives late."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.looked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def read(self, fn: Callable[..., Any], **how: Any) -> Any:
        answer = await super().read(fn, **how)
        if isinstance(answer, list) and any(isinstance(each, Claim) for each in answer):
            self.looked.set()
            await self.may_answer.wait()
        return answer


async def test_what_ends_while_unknown_claims_are_looked_for_is_not_started_again(
    database_url,
):
    ran: list[int] = []
    may_end = asyncio.Event()
    async with Retoma(database_url) as app:

        async def pay(n: int) -> int:
            ran.append(n)
            return n

        @app.job
        async def work(ctx: Context, n: int) -> int:
            if n == 0:
                await may_end.wait()
            return await ctx.step("pay", pay, n)

        database = Recalling(await app.database())
        options = RunnerOptions(tick=0.2, slots=2)
        runner = Runner(RunnerParts(database=database, kinds=app.kinds, options=options))
        first = await app.submit(work, 0)
        async with beside(runner):
            await eventually(lambda: claimed(app, first.id))
            with crash_at("claim.after_commit", "reply_lost"):
                second = await app.submit(work, 1)
                async with asyncio.timeout(60):
                    await database.looked.wait()
            may_end.set()
            await eventually(lambda: ended(app, first.id))
            database.may_answer.set()
            await eventually(lambda: ended(app, second.id))

        assert [0, 1] == sorted(ran)
        for job in (first, second):
            told = [event.type for event in await app.events(job.id)]
            assert ["submitted", "claimed", "step_saved", "done"] == told
            assert 0 == (await app.get(job.id)).failures


async def test_what_was_claimed_and_could_not_be_started_is_started_under_its_epoch(
    database_url,
):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return n

        with crash_at("runner.claimed", "exception"):
            job = await app.submit(work, 0)
            async with running(app, tick=60):
                await eventually(lambda: ended(app, job.id))

        told = [event.type for event in await app.events(job.id)]
        assert ["submitted", "claimed", "done"] == told


async def test_a_broken_attempt_gives_its_job_back_and_is_not_started_under_its_epoch(
    database_url,
):
    """What it may still save would be done twice; the next claim reads it back."""
    ran: list[int] = []
    async with Retoma(database_url) as app:

        async def pay() -> int:
            ran.append(1)
            return 1

        @app.job
        async def work(ctx: Context) -> int:
            return await ctx.step("pay", pay)

        job = await app.submit(work)
        with crash_at("attempt.before_settle", "exception"):
            await drain(app, tick=60)

        told = [(event.type, event.epoch) for event in await app.events(job.id)]
        assert [("submitted", None), ("claimed", 1), ("step_saved", 1)] == told[:3]
        assert [("released", 1), ("claimed", 2), ("done", 2)] == told[3:]
        assert [1] == ran
        assert 0 == (await app.get(job.id)).failures


class LateSettling(Counting):
    """A database that is slow to write how a claim has ended."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.settling = asyncio.Event()
        self.may_write = asyncio.Event()

    async def write(self, fn: Callable[..., Any], **how: Any) -> Any:
        if how["verb"] == "settle":
            self.settling.set()
            await self.may_write.wait()
        return await super().write(fn, **how)


async def test_a_job_on_its_way_back_is_not_started_while_unknown_claims_are_looked_for(
    database_url,
):
    started: list[tuple[int, int]] = []
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            started.append((ctx.job, ctx.epoch))
            return n

        async def has_started(which: tuple[int, int]) -> bool:
            return which in started

        database = LateSettling(await app.database())
        runner = Runner(
            RunnerParts(database=database, kinds=app.kinds, options=RunnerOptions(tick=60))
        )
        with crash_at("attempt.before_settle", "exception"):
            broken = await app.submit(work, 0)
            async with beside(runner), asyncio.timeout(60):
                await database.settling.wait()
                with crash_at("claim.after_commit", "reply_lost"):
                    lost = await app.submit(work, 1)
                    await eventually(lambda: has_started((lost.id, 1)))
                database.may_write.set()
                for job in (broken, lost):
                    await eventually(partial(ended, app, job.id))

        assert [(broken.id, 1), (broken.id, 2), (lost.id, 1)] == sorted(started)
        told = [event.type for event in await app.events(broken.id)]
        assert ["submitted", "claimed", "released", "claimed", "done"] == told
        assert 0 == await app.runners.refused_writes()


async def claimed(app: Retoma, job: int) -> bool:
    return (await app.get(job)).state is State.RUNNING


@asynccontextmanager
async def beside(runner: Runner) -> AsyncIterator[None]:
    task = asyncio.create_task(runner.run())
    try:
        yield
    finally:
        runner.stop()
        async with asyncio.timeout(60):
            await task


@pytest.mark.parametrize("verb", ["save", "settle"])
async def test_e11_a_write_whose_answer_was_lost_is_not_done_twice(database_url, verb):
    async with Retoma(database_url) as app:

        async def pay() -> str:
            return "receipt"

        @app.job(retry=AT_ONCE)
        async def work(ctx: Context) -> str:
            return await ctx.step("pay", pay)

        job = await app.submit(work)
        with crash_at(f"{verb}.after_commit", "reply_lost"):
            await drain(app)

        told = [event.type for event in await app.events(job.id)]
        assert ["submitted", "claimed", "step_saved", "done"] == told


async def test_e4_a_runner_declared_lost_stops_everything_and_begins_a_new_boot(database_url):
    async with Retoma(database_url) as app:
        stopped: list[int] = []
        begun = asyncio.Event()

        async def pay(epoch: int) -> int:
            return epoch

        @app.job(retry=AT_ONCE)
        async def work(ctx: Context) -> Any:
            begun.set()
            if ctx.epoch > 1:
                return await ctx.step("pay", pay, ctx.epoch)
            try:
                await asyncio.sleep(60)
            finally:
                stopped.append(ctx.epoch)

        job = await app.submit(work)
        async with running(app, beat=0.1, tick=0.2):
            await begun.wait()
            [boot] = [runner.boot for runner in await app.runners.list()]
            await (await app.database()).write(
                lambda tx: store.move_runner(tx, boot, "lost", actor="test"), verb="lose"
            )
            await eventually(lambda: ended(app, job.id))

        found = await app.get(job.id)
        assert ("2", 1) == (found.result, found.failures + 1)
        assert [1] == stopped
        assert ["lost", "done"] == [attempt.ended for attempt in await app.attempts(job.id)]
        assert {"lost", "gone"} == {runner.state for runner in await app.runners.list()}


# --- leaving


async def test_e29_a_stopped_runner_claims_nothing_more_and_finishes_what_it_has(database_url):
    async with Retoma(database_url) as app:
        begun, go_on = asyncio.Event(), asyncio.Event()

        @app.job
        async def work(ctx: Context, n: int) -> int:
            begun.set()
            await go_on.wait()
            return n

        batch = await app.submit_many(work, range(3))
        async with running(app, slots=1) as task:
            await begun.wait()
            app.stop()
            await eventually(lambda: state_is(app, "leaving"))
            go_on.set()
            async with asyncio.timeout(60):
                await task

        assert {State.DONE: 1, State.WAITING: 2} == await batch.counts()
        assert ["gone"] == [runner.state for runner in await app.runners.list()]


async def state_is(app: Retoma, state: str) -> bool:
    return [state] == [runner.state for runner in await app.runners.list()]


async def test_a_runner_that_has_left_leaves_no_tally_behind(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return n

        await app.submit_many(work, range(10))
        await drain(app)

        sql = adhoc("SELECT count(*) FROM tallies")
        assert [(0,)] == await (await app.database()).read(lambda tx: tx.all(sql))


async def test_a_runner_can_be_seen_in_the_audit_log_coming_and_going(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context) -> None: ...

        await drain(app, name="ana")

        told = await rows(await app.database(), "SELECT verb, subject FROM audit ORDER BY id")
        assert [
            ("runner.booted", "ana"),
            ("runner.leaving", "ana"),
            ("runner.gone", "ana"),
        ] == told


# --- what it may be told


@pytest.mark.parametrize(
    ("knobs", "why"),
    [
        ({"slots": 0}, "slots must be at least 1"),
        ({"tick": 0}, "tick must be longer than nothing"),
        ({"beat": 0}, "beat must be longer than nothing"),
        ({"grace": -1}, "grace must not be negative"),
        ({"lease": 15, "beat": 10}, "lease must be at least 3 beats"),
    ],
)
def test_a_runner_that_could_never_work_is_refused(knobs, why):
    with pytest.raises(BadInput, match=why):
        RunnerOptions(**knobs)


class Pausing(Clock):
    """Whoever sleeps by it sleeps until he is stopped, and it tells when that begins."""

    def __init__(self) -> None:
        super().__init__()
        self.asleep = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asleep.set()
        await asyncio.sleep(60)


class Breaking(Counting):
    """A database on which the first settling goes wrong in a way nobody foresaw."""

    async def write(self, fn: Callable[..., Any], *, verb: str, **how: Any) -> Any:
        if verb == "settle" and not self.asked[verb]:
            self.asked[verb] += 1
            raise RuntimeError("nobody foresaw this")
        return await super().write(fn, verb=verb, **how)


async def test_e13_a_cancel_that_meets_a_failed_settling_does_not_leave_the_job_behind(
    database_url,
):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context) -> None: ...

        job = await app.submit(work)
        clock, database = Pausing(), Breaking(await app.database())
        runner = Runner(
            RunnerParts(
                database=database, kinds=app.kinds, options=RunnerOptions(tick=0.3), clock=clock
            )
        )
        task = asyncio.create_task(runner.run())
        async with asyncio.timeout(60):
            await clock.asleep.wait()
        asked = await app.cancel(job.id)
        await eventually(lambda: ended(app, job.id))
        runner.stop()
        await task

        assert State.RUNNING is asked
        assert (await app.get(job.id)).state in (State.CANCELED, State.DONE)


async def test_two_runners_of_one_app_leave_as_quickly_as_one(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return n

        batch = await app.submit_many(work, range(20))
        async with asyncio.timeout(25):  # less than a grace
            await asyncio.gather(drain(app, slots=2), drain(app, slots=2), drain(app, slots=2))

        assert {State.DONE: 20} == await batch.counts()


async def test_e28_what_becomes_due_before_the_last_one_taken_does_not_wait_for_a_tick(
    database_url, test_clock
):
    """The latest submitted are due first: a hint points behind all the others."""
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context) -> None: ...

        test_clock.jump(0)
        for n in range(4):
            await app.submit(work, delay=60 - n)
        test_clock.jump(61)

        async with asyncio.timeout(90), running(app, slots=4, tick=600):
            await eventually(lambda: all_done(app, 4))


async def all_done(app: Retoma, jobs: int) -> bool:
    return {State.DONE: jobs} == await app.insights.counts()


async def test_a_runner_does_not_retune_the_program_that_uses_it(database_url):
    """Garbage collection and thread switching belong to the program; `retoma runner` tunes its own process."""
    app = Retoma(database_url)
    tuned = []

    @app.job
    async def look(ctx: Context) -> None:
        tuned.append((gc.get_threshold(), sys.getswitchinterval()))

    before = (gc.get_threshold(), sys.getswitchinterval())
    async with app:
        await app.submit(look)
        await app.run(until_idle=True)

    assert [before] == tuned
