"""A runner that claims by hint: the rules of every claim, nothing unasked, duties laid down when done."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from retoma import Context, Limit, Retoma, Retry, Snooze, State, Transient
from retoma.db import Away, Database, Transaction, adhoc
from retoma.engine.ops.leader_tasks import Duty
from retoma.engine.run.hinted import Heeded, HintedRunner, Leaving
from retoma.engine.store.hints import Again, Hint
from tests.engine.aids import change, eventually, rows

NOW = adhoc("SELECT (SELECT clock())")
AGAIN = Again(after=30.0, young=5.0, most=100)


def build(url: str, told: list[Any]) -> Retoma:
    app = Retoma(url)

    @app.job
    async def work(ctx: Context, payload: Any) -> Any:
        told.append(payload)
        return await ctx.step("once", _same, payload)

    @app.job(limit=Limit(1))
    async def narrow(ctx: Context, gate: str) -> None:
        told.append(gate)
        await gates[gate].wait()

    @app.job(retry=Retry(attempts=2, base=1, cap=1))
    async def shaky(ctx: Context, payload: Any) -> None:
        if ctx.attempt == 1:
            raise Transient("not this time")

    @app.job
    async def twice(ctx: Context, payload: Any) -> Any:
        kept = ctx.kept("once")
        await ctx.step("once", _same, payload)
        return None if kept else Snooze(3600)

    gates: dict[str, asyncio.Event] = {"first": asyncio.Event(), "second": asyncio.Event()}
    app.gates = gates  # type: ignore[attr-defined]  # for the test to open
    return app


async def _same(value: Any) -> Any:
    return value


@pytest.fixture
def told() -> list[Any]:
    return []


async def test_e26_a_hint_is_heeded_once_and_everything_else_passes(database_url, told):
    async with build(database_url, told) as app:
        job = await app.submit("work", 7)
        runner = await app.hinted()

        hint = Hint("work", job.id)
        heeded = [await runner.heed(hint) for _ in range(3)]
        strangers = [
            await runner.heed(Hint("narrow", job.id)),
            await runner.heed(Hint("work", 99)),
        ]
        await runner.stopped()

        assert [Heeded.RAN, Heeded.PASSED, Heeded.PASSED] == heeded
        assert [Heeded.UNKNOWN, Heeded.UNKNOWN] == strangers
        assert [7] == told
        assert State.DONE == (await app.get(job.id)).state
        assert ["submitted", "claimed", "step_saved", "done"] == [
            event.type for event in await app.events(job.id)
        ]
        [seen] = await app.runners.list()
        assert "gone" == seen.state


async def test_e26_many_at_once_heed_one_hint_and_one_runs_it(database_url, told):
    async with build(database_url, told) as app, build(database_url, told) as other:
        job = await app.submit("work", 7)
        runners = [await app.hinted(slots=20), await other.hinted(slots=20)]

        hint = Hint("work", job.id)
        heeded = await asyncio.gather(*(r.heed(hint) for r in runners for _ in range(10)))
        await asyncio.gather(*(runner.stopped() for runner in runners))

        assert 1 == heeded.count(Heeded.RAN)
        assert [7] == told
        assert 1 == len(await app.attempts(job.id))


@pytest.mark.parametrize("why", ["later", "paused", "version", "canceled"])
async def test_e16_what_may_not_be_claimed_is_not_claimed_by_a_hint(database_url, told, why):
    async with build(database_url, told) as app:
        batch = await app.submit_many(
            "work", [1], name="one", delay=3600 if why == "later" else None
        )
        [job] = await app.jobs(batch=batch.id)
        if why == "paused":
            await batch.pause()
        elif why == "canceled":
            await app.cancel(job.id)
        elif why == "version":
            await change(await app.database(), "UPDATE jobs SET version = 2")
        runner = await app.hinted()

        heeded = await runner.heed(Hint("work", job.id))
        await runner.stopped()

        assert Heeded.PASSED == heeded
        assert [] == told
        assert [] == await app.attempts(job.id)


async def test_e16_a_limit_holds_for_hints_and_whoever_made_room_knows_it(database_url, told):
    async with build(database_url, told) as app:
        first, second = [await app.submit("narrow", gate) for gate in ("first", "second")]
        runner = await app.hinted(slots=5)
        running = asyncio.create_task(runner.heed(Hint("narrow", first.id)))
        await eventually(lambda: _value(told == ["first"]))

        passed = await runner.heed(Hint("narrow", second.id))
        waits = await runner.hint_again(AGAIN)
        for gate in app.gates.values():  # type: ignore[attr-defined]
            gate.set()
        made_room = await running
        ready = await runner.hint_again(AGAIN, "narrow")
        ran = [await runner.heed(hint) for hint in ready]
        await runner.stopped()

        assert (Heeded.PASSED, []) == (passed, waits)
        assert Heeded.MADE_ROOM == made_room
        assert [Hint("narrow", second.id)] == ready
        assert [Heeded.MADE_ROOM] == ran
        assert ["first", "second"] == told


async def test_a_job_that_waits_is_hinted_again_and_not_too_often(
    database_url, told, test_clock
):
    async with build(database_url, told) as app:
        job = await app.submit("work", 1)
        later = await app.submit("work", 2, delay=100)
        test_clock.jump(0)
        runner = await app.hinted()

        fresh = await runner.hint_again(AGAIN)  # its submission has hinted it
        test_clock.jump(6)
        first, second = [await runner.hint_again(AGAIN) for _ in range(2)]
        test_clock.jump(20)
        second += await runner.hint_again(AGAIN)
        test_clock.jump(11)
        third = await runner.hint_again(AGAIN)
        test_clock.jump(65)
        due = await runner.hint_again(AGAIN)
        await runner.stopped()

        hint = Hint("work", job.id)
        assert ([], [hint], []) == (fresh, first, second)
        assert [hint] == third
        assert {hint, Hint("work", later.id)} == set(due)


async def test_a_retry_that_is_due_is_a_new_wait_and_hinted_at_once(
    database_url, told, test_clock
):
    async with build(database_url, told) as app:
        job = await app.submit("shaky")
        test_clock.jump(31)
        runner = await app.hinted()
        hint = Hint("shaky", job.id)

        before = await runner.hint_again(AGAIN)
        await runner.heed(hint)
        waits = await runner.hint_again(AGAIN)
        test_clock.jump(2)
        due = await runner.hint_again(AGAIN)
        await runner.heed(hint)
        await runner.stopped()

        assert ([hint], [], [hint]) == (before, waits, due)
        assert State.DONE == (await app.get(job.id)).state


async def test_nobody_is_hinted_twice_in_one_wait_while_there_are_hints_enough(
    database_url, told, test_clock
):
    async with build(database_url, told) as app:
        job = await app.submit("shaky")
        test_clock.jump(31)
        runner = await app.hinted()
        once = Again(after=30.0, young=5.0, most=100, repeat=False)
        hint = Hint("shaky", job.id)

        first = await runner.hint_again(once)
        test_clock.jump(1000)
        second = await runner.hint_again(once)
        await runner.heed(hint)
        test_clock.jump(2)
        next_wait = await runner.hint_again(once)
        test_clock.jump(1000)
        repeated = await runner.hint_again(AGAIN)
        await runner.stopped()

        assert ([hint], [], [hint], [hint]) == (first, second, next_wait, repeated)


async def test_hints_are_bounded_and_their_rows_go(database_url, told, test_clock):
    async with build(database_url, told) as app:
        await app.submit_many("work", range(50), name="fifty")
        test_clock.jump(31)
        runner = await app.hinted()

        few = await runner.hint_again(Again(after=30.0, young=5.0, most=20))
        rest = await runner.hint_again(AGAIN)
        batch = await app.batches.get(1)
        await batch.cancel()
        test_clock.jump(120)
        none = await runner.hint_again(AGAIN)
        await runner.stopped()

        assert (20, 30, 0) == (len(few), len(rest), len(none))
        assert not set(few) & set(rest)
        assert [(0,)] == await rows(await app.database(), "SELECT count(*) FROM hints")


async def test_a_duty_is_laid_down_when_it_is_done(database_url, told):
    async with build(database_url, told) as app, build(database_url, told) as other:
        one, two = await app.hinted(), await other.hinted()
        await app.submit("work", 1)

        known = [duty for duty in Duty if duty is not Duty.NOTIFY]  # it has nobody to notify
        done = [await runner.do(duty) for duty in known for runner in (one, two)]
        assert not await one.do(Duty.NOTIFY)
        terms = await rows(
            await app.database(), "SELECT boot, term FROM duties WHERE name <> 'notify'"
        )
        await one.stopped()
        await two.stopped()

        assert all(done)
        assert {(None, 2)} == set(terms)
        tallies = await rows(await app.database(), "SELECT count(*) FROM tallies")
        assert [(0,)] == tallies


async def test_a_duty_that_a_runner_holds_is_left_to_it(database_url, told):
    async with build(database_url, told) as app:
        runner = await app.hinted()
        await runner.recover()
        await change(
            await app.database(),
            "UPDATE duties SET boot = (SELECT boot FROM runners), term = 1",
        )
        async with build(database_url, told) as other:
            beside = await other.hinted()

            done = await beside.do(Duty.FOLD)
            await beside.stopped()
        await runner.stopped()

        assert not done


async def test_e9_what_a_lost_runner_had_is_taken_back_by_a_duty(
    database_url, told, test_clock
):
    async with build(database_url, told) as app, build(database_url, told) as other:
        job = await app.submit("narrow", "first")
        silent = await app.hinted(beat=10_000, lease=30_000)
        held = asyncio.create_task(silent.heed(Hint("narrow", job.id)))
        await eventually(lambda: _value(told == ["first"]))
        await change(await app.database(), "UPDATE runners SET lease_until = beat_at")
        runner = await other.hinted()

        early = await runner.recover()  # nobody is declared lost by one who has just come
        test_clock.jump(40)
        await eventually(lambda: _beaten(app, 40))
        test_clock.jump(40)
        swept = await runner.recover()
        state = (await app.get(job.id)).state
        await runner.stopped()
        held.cancel()

        assert (0, 0) == (early.lost, early.taken_back)
        assert (1, 1, State.WAITING) == (swept.lost, swept.taken_back, state)


async def test_a_runner_that_leaves_gives_back_and_begins_nothing_more(database_url, told):
    async with build(database_url, told) as app:
        job = await app.submit("narrow", "first")
        runner = await app.hinted(grace=0.0)
        held = asyncio.create_task(runner.heed(Hint("narrow", job.id)))
        await eventually(lambda: _value(told == ["first"]))

        await runner.stopped()

        assert Heeded.MADE_ROOM == await held
        assert State.WAITING == (await app.get(job.id)).state
        assert "released" == (await app.events(job.id))[-1].type
        with pytest.raises(Leaving):
            await runner.heed(Hint("narrow", job.id))


async def test_one_job_is_let_go_of_where_its_task_was_stopped(database_url, told):
    async with build(database_url, told) as app:
        job = await app.submit("narrow", "first")
        runner = await app.hinted()
        held = asyncio.create_task(runner.heed(Hint("narrow", job.id)))
        await eventually(lambda: _value(told == ["first"]))

        runner.release(Hint("narrow", job.id))
        await held
        other = await app.submit("work", 1)
        heeded = await runner.heed(Hint("work", other.id))
        await runner.stopped()

        assert "released" == (await app.events(job.id))[-1].type
        assert Heeded.RAN == heeded


class AwayOnce:
    """A database that is away when the steps of a claimed job are to be read."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def write(self, fn: Callable[..., Any], *, verb: str, **how: Any) -> Any:
        answer = await self._database.write(fn, verb=verb, **how)
        self.away |= verb == "claim" and answer.checkpoint is not None
        return answer

    async def read(self, fn: Callable[..., Any], **how: Any) -> Any:
        if self.away:
            self.away = False
            raise Away("the network is down")
        return await self._database.read(fn, **how)


async def test_what_was_claimed_by_a_hint_and_could_not_be_started_is_started_later(
    database_url, told
):
    async with build(database_url, told) as app:
        job = await app.submit("twice", 1)
        runner = await app.hinted()
        runner._parts = replace(runner._parts, database=AwayOnce(await app.database()))
        await runner.recover()
        assert Heeded.RAN == await runner.heed(Hint("twice", job.id))
        await change(await app.database(), "UPDATE jobs SET run_at = NULL, turn = 1")

        with pytest.raises(Away):
            await runner.heed(Hint("twice", job.id))
        await eventually(lambda: _is(app, job.id, State.DONE))
        await runner.stopped()

        events = [(event.type, event.epoch) for event in await app.events(job.id)]
        assert [("claimed", 2), ("done", 2)] == events[-2:]


async def _is(app: Retoma, job: int, state: State) -> bool:
    return (await app.get(job)).state is state


async def test_e4_a_boot_that_is_over_is_followed_by_another(database_url, told):
    async with build(database_url, told) as app:
        runner: HintedRunner = await app.hinted(beat=0.05, lease=60)
        await runner.recover()
        await change(await app.database(), "UPDATE runners SET state = 'lost'")
        await eventually(lambda: _boots(app, 2))
        job = await app.submit("work", 1)

        heeded = await runner.heed(Hint("work", job.id))
        await runner.stopped()

        assert Heeded.RAN == heeded


async def test_a_cancel_reaches_a_job_that_runs_by_a_hint(database_url, told):
    async with build(database_url, told) as app:
        job = await app.submit("narrow", "first")
        runner = await app.hinted()
        held = asyncio.create_task(runner.heed(Hint("narrow", job.id)))
        await eventually(lambda: _value(told == ["first"]))

        await app.cancel(job.id)
        await held
        await runner.stopped()

        assert State.CANCELED == (await app.get(job.id)).state


async def _beaten(app: Retoma, seconds: float) -> bool:
    """Whether somebody has beaten since time was moved; ringing lets a pulse look at its clock."""
    database = await app.database()

    def ring(tx: Transaction) -> None:
        tx.one(NOW)
        tx.ring("look")

    await database.write(ring, verb="ring")
    beats = sorted(seen.beat_at for seen in await app.runners.list())
    return (beats[-1] - beats[0]).total_seconds() >= seconds


async def _boots(app: Retoma, n: int) -> bool:
    return len(await app.runners.list()) == n


async def _value(value: bool) -> bool:
    return value
