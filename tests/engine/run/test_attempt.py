"""One claim of one job: how its story ends, and what is settled then."""

import asyncio
import gc
import weakref
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from retoma import Context, Park, Permanent, Retoma, Retry, Skip, Snooze, State, Transient
from retoma.db import Away, Busy, Full, Interrupted, ReplyLost
from retoma.engine.rules.errors import Action, Code, ErrorClass
from retoma.engine.rules.job import RELEASES
from retoma.engine.rules.states import ParkReason
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE, change, eventually, rows, running

MINUTES = Retry(base=600, cap=600, jitter=0)  # a retry that this test will not see


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).ended


async def waits_again(app: Retoma, job: int) -> bool:
    found = await app.get(job)
    return found.state is State.WAITING and found.epoch > 0


async def last_event(app: Retoma, job: int):
    return (await app.events(job))[-1]


# --- failures


async def test_a_failed_attempt_waits_for_its_backoff(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=MINUTES)
        async def story(ctx: Context) -> None:
            raise Transient("the site answered 503", code="ERROR502")

        job = await app.submit(story)
        async with running(app):
            await eventually(lambda: waits_again(app, job.id))

        found, event = await app.get(job.id), await last_event(app, job.id)
        assert ("failed", 600) == (event.type, event.details["after"])
        assert (1, "ERROR502") == (found.failures, found.code)
        assert found.run_at is not None
        assert timedelta(seconds=599) < found.run_at - event.at <= timedelta(seconds=601)


async def test_e9_when_the_attempts_are_spent_the_job_is_buried_with_what_was_seen(
    database_url,
):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await ctx.attach("page.html", "<p>sold out</p>")
            raise ValueError("no price on the page")

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "exhausted", "exception", 3) == (
            found.state, found.reason, found.code, found.failures,
        )  # fmt: skip
        event = await last_event(app, job.id)
        assert "buried" == event.type
        assert ("ValueError", "no price on the page") == (
            event.details["type"],
            event.details["message"],
        )
        assert "in story" in event.details["stack"]
        evidence = [each for each in await app.events(job.id) if each.type == "evidence"]
        assert ["page.html"] * 3 == [each.details["name"] for each in evidence]
        assert ["failed"] * 3 == [each.ended for each in await app.attempts(job.id)]


@pytest.mark.parametrize(
    "error",
    [
        Away("the network is down"),
        ReplyLost("the connection broke"),
        Busy("a deadlock"),
        Full("no room"),
        ExceptionGroup("of branches", [Away("the network is down"), Busy("a deadlock")]),
    ],
)
async def test_trouble_of_the_database_is_no_failure_of_the_job(database_url, error):
    runs: list[int] = []
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(attempts=1))
        async def story(ctx: Context) -> None:
            runs.append(ctx.attempt)
            if len(runs) < 3:
                raise error

        job = await app.submit(story)
        await drain(app)

        assert [1, 1, 1] == runs
        assert State.DONE is (await app.get(job.id)).state
        ends = [event.type for event in await app.events(job.id) if event.epoch]
        assert ["claimed", "released"] * 2 + ["claimed", "done"] == ends


async def test_a_statement_of_a_jobs_own_that_never_ends_is_its_failure(database_url):
    error = Interrupted("its time was over")
    error.callers = True
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(attempts=1))
        async def story(ctx: Context) -> None:
            raise error

        job = await app.submit(story)
        await drain(app)

        assert State.DEAD is (await app.get(job.id)).state


async def test_a_permanent_error_is_not_tried_again(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            raise Permanent("there is no such product", code="GONE")

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "permanent", "GONE", 1) == (
            found.state, found.reason, found.code, found.epoch,
        )  # fmt: skip


@pytest.mark.parametrize(("asked", "granted"), [(120.0, 120.0), (1e9, 900.0)])
async def test_a_retry_after_is_honoured_within_bounds(database_url, asked, granted):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> None:
            raise Transient("429", retry_after=asked)

        job = await app.submit(story)
        async with running(app):
            await eventually(lambda: waits_again(app, job.id))

        assert granted == (await last_event(app, job.id)).details["after"]


async def test_a_code_may_have_a_smaller_budget_than_its_job(database_url):
    async with Retoma(database_url) as app:
        codes = {"CAPTCHA": Code("CAPTCHA", ErrorClass.BLOCKED, Action.RETRY, 2, "robots")}

        @app.job(retry=Retry(attempts=9, base=0, cap=0), codes=codes)
        async def story(ctx: Context) -> None:
            raise Transient("prove you are human", code="CAPTCHA")

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "exhausted", 2) == (found.state, found.reason, found.failures)


async def test_a_code_may_call_for_a_person(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            raise Transient("401", code="config")

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.PARKED, "config", 0) == (found.state, found.reason, found.failures)


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError("by itself")])
async def test_a_story_that_ends_itself_oddly_has_failed_and_hurts_nobody(database_url, error):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context, odd: bool) -> str:
            if odd:
                raise error
            return "fine"

        odd, fine = await app.submit(story, True), await app.submit(story, False)
        await drain(app)

        assert (State.DEAD, "exhausted") == (
            (await app.get(odd.id)).state,
            (await app.get(odd.id)).reason,
        )
        assert State.DONE is (await app.get(fine.id)).state


async def test_an_attempt_that_takes_too_long_has_failed(database_url):
    async with Retoma(database_url) as app:
        cleaned: list[int] = []

        @app.job(timeout=0.05, retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                cleaned.append(ctx.attempt)

        job = await app.submit(story)
        await drain(app)

        found, event = await app.get(job.id), await last_event(app, job.id)
        assert (State.DEAD, "exhausted", "timeout") == (found.state, found.reason, found.code)
        assert "the attempt took longer than 0.05 s" == event.details["message"]
        assert [1, 2, 3] == cleaned


async def test_a_step_that_came_home_before_the_timeout_is_kept(database_url):
    async with Retoma(database_url) as app:
        calls: list[int] = []

        async def pay() -> str:
            calls.append(1)
            return "receipt"

        @app.job(timeout=3.0, retry=AT_ONCE)
        async def story(ctx: Context) -> str:
            receipt = await ctx.step("pay", pay)
            if ctx.attempt == 1:
                await asyncio.sleep(60)
            return receipt

        job = await app.submit(story)
        await drain(app)

        assert '"receipt"' == (await app.get(job.id)).result
        assert [1] == calls


class Odd:
    """No database can store this."""


class RaisingRepr:
    def __init__(self, error: type[BaseException] = RuntimeError) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error


class WrongRepr:
    def __repr__(self) -> str:
        return 3  # type: ignore[return-value]


class RaisingModel:
    def model_dump(self, **_: Any) -> Any:
        raise KeyError("price")


UNSTORABLE = [
    *(Odd(), float("nan"), "\ud800", {1: 2}, 10**5000, {"n": [10**5000]}, {10**5000: 1}),
    *(RaisingRepr(), [RaisingRepr()], {"a": RaisingRepr(asyncio.CancelledError)}, WrongRepr()),
    *(RaisingRepr(SystemExit), {RaisingRepr()}, RaisingModel()),
]


@pytest.mark.parametrize("way", ["result", "step", "thread"])
async def test_e22_a_result_that_cannot_be_stored_is_paid_once_and_parked_with_its_bytes_kept(
    database_url, way
):
    """Whatever its repr does: it is asked for, to keep what was paid for."""
    async with Retoma(database_url) as app:
        calls: list[int] = []

        async def buy(n: int) -> Any:
            calls.append(n)
            return UNSTORABLE[n]

        def buy_in_a_thread(n: int) -> Any:
            calls.append(n)
            return UNSTORABLE[n]

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context, n: int) -> Any:
            if way == "result":
                return await buy(n)
            if way == "step":
                return await ctx.step("buy", buy, n)
            return await ctx.step("buy", buy_in_a_thread, n, where="thread")

        await app.submit_many(story, range(len(UNSTORABLE)))
        await drain(app)

        jobs = await app.jobs(kind="story")
        ends = {(job.state, job.reason, job.code) for job in jobs}
        assert {(State.PARKED, "unstorable", "unstorable_result")} == ends
        assert list(range(len(UNSTORABLE))) == sorted(calls)
        for job in jobs:
            told = [event.type for event in await app.events(job.id)]
            assert ["evidence", "parked"] == told[-2:]
            assert ["result"] == [each.name for each in await app.evidence.list(job.id)]


async def test_a_number_too_long_to_store_is_kept_digit_by_digit(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> Any:
            return {"n": 10**5000}

        job = await app.submit(story)
        await drain(app)

        [kept] = await app.evidence.list(job.id)
        assert f"{{'n': {hex(10**5000)}}}".encode() == await app.evidence.read(kept.sha256)


async def test_an_error_with_unprintable_words_is_told_all_the_same(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            raise Permanent("half a \ud800 pair, a NUL \0 and " + "x" * 10_000)

        job = await app.submit(story)
        await drain(app)

        message = (await last_event(app, job.id)).details["message"]
        assert message.startswith("half a ? pair, a NUL � and x")
        assert 2_000 == len(message)


# --- ends that are returned


async def test_a_snooze_waits_and_spends_no_attempt(database_url):
    async with Retoma(database_url) as app:
        claims: list[int] = []

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> Any:
            claims.append(ctx.attempt)
            return Snooze(0) if len(claims) < 6 else "now"

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DONE, '"now"', 0) == (found.state, found.result, found.failures)
        assert [1] * 6 == claims
        assert ["snoozed"] * 5 + ["done"] == [e.ended for e in await app.attempts(job.id)]


async def test_a_snooze_is_not_taken_up_before_its_time(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> Any:
            return Snooze(timedelta(hours=1))

        job = await app.submit(story)
        async with running(app):
            await eventually(lambda: waits_again(app, job.id))

        found = await app.get(job.id)
        assert found.run_at is not None
        assert timedelta(minutes=59) < found.run_at - (await last_event(app, job.id)).at


async def test_a_skip_ends_well_with_its_reason(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> Any:
            return Skip("seen before")

        job = await app.submit(story)
        await drain(app)

        assert State.SKIPPED is (await app.get(job.id)).state
        assert "seen before" == (await last_event(app, job.id)).details["why"]


async def test_a_parked_job_waits_for_a_person_and_then_goes_on(database_url):
    async with Retoma(database_url) as app:
        calls: list[int] = []

        async def analyse() -> str:
            calls.append(1)
            return "plan"

        @app.job
        async def story(ctx: Context) -> Any:
            plan = await ctx.step("analyse", analyse)
            if ctx.epoch == 1:
                return Park("May is spent", ParkReason.BUDGET)
            return plan

        job = await app.submit(story)
        await drain(app)
        parked = await app.get(job.id)
        await app.resume(job.id)
        await drain(app)

        found = await app.get(job.id)
        assert (State.PARKED, "budget") == (parked.state, parked.reason)
        assert (State.DONE, '"plan"', 1) == (found.state, found.result, found.generation)
        assert [1] == calls


# --- ends from outside


async def test_e12_again_keeps_the_committed_steps_and_fresh_hides_them(database_url):
    async with Retoma(database_url) as app:
        calls: list[int] = []

        async def analyse() -> int:
            calls.append(1)
            return len(calls)

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> int:
            analysis = await ctx.step("analyse", analyse)
            if ctx.generation == 1:
                raise Permanent("the shop is closed")
            return analysis

        job = await app.submit(story)
        await drain(app)
        await app.retry(job.id)
        await drain(app)
        kept = (await app.get(job.id)).result
        await app.retry(job.id, fresh=True)
        await drain(app)
        afresh = (await app.get(job.id)).result
        await app.retry(job.id)
        await drain(app)

        assert ("1", "2", "2") == (kept, afresh, (await app.get(job.id)).result)
        assert 2 == len(calls)
        assert 4 == (await app.get(job.id)).generation


async def test_e13_a_running_job_is_canceled_at_once(database_url):
    async with Retoma(database_url) as app:
        begun = asyncio.Event()
        calls: list[str] = []

        async def later() -> None:
            calls.append("later")

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            begun.set()
            await asyncio.sleep(60)
            await ctx.step("later", later)

        job = await app.submit(story)
        async with running(app, tick=60):
            await begun.wait()
            answer = await app.cancel(job.id)
            await eventually(lambda: ended(app, job.id))

        told = [event.type for event in await app.events(job.id)]
        assert (State.RUNNING, State.CANCELED) == (answer, (await app.get(job.id)).state)
        assert ["submitted", "claimed", "cancel_requested", "canceled"] == told
        assert [] == calls
        assert 0 == (await app.get(job.id)).failures


async def test_e13_a_story_that_will_not_stop_is_stopped_at_its_next_step(database_url):
    async with Retoma(database_url) as app:
        begun, go_on = asyncio.Event(), asyncio.Event()
        calls: list[str] = []

        async def note(what: str) -> None:
            calls.append(what)

        @app.job
        async def story(ctx: Context) -> None:
            begun.set()
            try:
                await go_on.wait()
            except asyncio.CancelledError:
                await ctx.step("too late", note, "too late")

        job = await app.submit(story)
        async with running(app):
            await begun.wait()
            await app.cancel(job.id)
            await eventually(lambda: ended(app, job.id))

        assert State.CANCELED is (await app.get(job.id)).state
        assert [] == calls


async def test_e13_a_cancel_that_comes_while_the_attempt_tidies_up_is_not_lost(database_url):
    """The story has ended, a task of it takes its time to stop: the job must still be settled."""
    async with Retoma(database_url) as app:
        begun, tidying, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def slow_to_stop() -> None:
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                tidying.set()
                await go_on.wait()

        @app.job
        async def story(ctx: Context) -> None:
            asyncio.create_task(ctx.step("slow", slow_to_stop))  # noqa: RUF006
            await begun.wait()

        job = await app.submit(story)
        async with running(app):
            await tidying.wait()
            await app.cancel(job.id)
            await asyncio.sleep(0.2)
            go_on.set()
            await eventually(lambda: ended(app, job.id))

        event = await last_event(app, job.id)
        assert ("done", {"too_late": True}) == (event.type, event.details)


async def test_waiting_parked_and_ended_jobs_answer_a_cancel_at_once(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context, park: bool) -> Any:
            return Park("look") if park else None

        parked = await app.submit(story, True)
        await drain(app)
        waiting = await app.submit(story, False)

        assert State.CANCELED is await app.cancel(waiting.id)
        assert State.CANCELED is await app.cancel(parked.id)
        assert State.CANCELED is await app.cancel(parked.id)
        await drain(app)
        assert 0 == (await app.get(waiting.id)).epoch


async def test_e29_a_leaving_runner_gives_back_what_it_cannot_finish(database_url):
    async with Retoma(database_url) as app:
        begun = asyncio.Event()

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            begun.set()
            await asyncio.sleep(60)

        job = await app.submit(story)
        async with running(app, grace=0.0):
            await begun.wait()

        found = await app.get(job.id)
        assert (State.WAITING, 0, 1) == (found.state, found.failures, found.epoch)
        assert ["released"] == [each.ended for each in await app.attempts(job.id)]


async def test_e9_a_job_given_back_too_often_is_buried(database_url):
    async with Retoma(database_url) as app:
        begun = asyncio.Event()

        @app.job
        async def story(ctx: Context) -> None:
            begun.set()
            await asyncio.sleep(60)

        assert 20 == RELEASES
        job = await app.submit(story)
        await change(await app.database(), "UPDATE jobs SET released = 20")
        async with running(app, grace=0.0):
            await begun.wait()

        found = await app.get(job.id)
        assert (State.DEAD, "exhausted", "released_too_often") == (
            found.state, found.reason, found.code,
        )  # fmt: skip


async def test_a_payload_that_no_longer_fits_is_buried_not_tried_for_ever(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context, n: int) -> int:
            return n

        job = await app.submit(story, 1)
        await change(await app.database(), "UPDATE jobs SET payload = '\"one\"'")
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "permanent", "bad_payload", 1) == (
            found.state, found.reason, found.code, found.epoch,
        )  # fmt: skip


async def test_e2_attempts_of_a_job_never_overlap(database_url):
    async with Retoma(database_url) as app:

        @app.job(retry=Retry(attempts=5, base=0, cap=0))
        async def story(ctx: Context) -> None:
            if ctx.attempt < 4:
                raise Transient("again")

        await app.submit_many(story, [None] * 20)
        await drain(app, slots=3)

        overlaps = await rows(
            await app.database(),
            "SELECT a.job FROM attempts a JOIN attempts b ON a.job = b.job AND a.epoch < b.epoch"
            " WHERE a.ended_at IS NULL OR b.claimed_at < a.ended_at",
        )
        assert [] == overlaps
        assert [(80,)] == await rows(await app.database(), "SELECT count(*) FROM attempts")


async def test_what_has_ended_waits_for_no_garbage_collector(database_url):
    """Thousands a second would: the collector then takes a quarter of a runner's time."""
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def work(ctx: Context, n: int) -> int:
            await ctx.step("one", double, n)
            if n % 2 and ctx.attempt == 1:
                raise Transient("once more")
            return n

        await app.submit_many(work, range(20))
        gc.collect()
        others = set(contexts())  # what earlier tests have left at work
        gc.disable()
        try:
            await drain(app)
            left = set(contexts()) - others
        finally:
            gc.enable()

        assert set() == left


# --- what has ended is not remembered


class Held(list[int]):
    """What a handler holds on to; a list can be referred to weakly only where it is a class."""


async def ended_well(ctx: Context, held: Held) -> str:
    async def fetch() -> list[int]:
        return held[:1]

    @dataclass
    class Local:
        n: int

        def of(self) -> Held:
            return held

    async def local() -> Local:
        return Local(1)

    def in_a_thread() -> list[int]:
        return held[:1]

    await ctx.step("fetch", fetch)
    assert (await ctx.step("local", local)).of() is held
    await ctx.step("in_a_thread", in_a_thread, where="thread")
    await ctx.step("partial", partial(fetch))
    await ctx.each("each", [1, 2], partial(fetch_of, held))
    await ctx.write("write", lambda _: len(held))
    return "done"


async def fetch_of(held: Held, n: int) -> list[int]:
    return [n, *held]


async def ended_badly(ctx: Context, held: Held) -> str:
    await ended_well(ctx, held)
    raise Permanent("no such page")


async def ended_for_a_person(ctx: Context, held: Held) -> Park:
    await ended_well(ctx, held)
    return Park("look at it")


async def ended_by_itself(ctx: Context, held: Held) -> str:
    await ended_well(ctx, held)
    await asyncio.sleep(60)
    return "too late"


async def ended_by_a_duplicate(ctx: Context, held: Held) -> str:
    await ended_well(ctx, held)
    return await ended_well(ctx, held)


async def ended_as_unstorable(ctx: Context, held: Held) -> Any:
    await ended_well(ctx, held)
    return held.append


ENDS = [
    (ended_well, State.DONE),
    (ended_badly, State.DEAD),
    (ended_for_a_person, State.PARKED),
    (ended_by_itself, State.CANCELED),
    (ended_by_itself, State.DEAD),
    (ended_by_a_duplicate, State.DEAD),
    (ended_as_unstorable, State.PARKED),
]


@pytest.mark.parametrize(("handler", "state"), ENDS)
async def test_nothing_that_has_ended_is_still_in_memory(database_url, handler, state):
    """A handler's own functions and classes lead to its context, and to all that it has saved."""
    async with Retoma(database_url) as app:
        left: list[weakref.ref[Held]] = []
        stop = "0.3s" if handler is ended_by_itself and state is State.DEAD else None

        @app.job(retry=Retry(attempts=1), timeout=stop)
        async def story(ctx: Context, n: int) -> Any:
            held = Held([n])
            left.append(weakref.ref(held))
            return await handler(ctx, held)

        async def ended() -> bool:
            jobs = await app.jobs(kind="story")
            if state is State.CANCELED:
                for job in jobs:
                    steps = await app.steps(job.id)
                    if job.state is State.RUNNING and len(steps) == 7:
                        await app.cancel(job.id)
            return {state} == {job.state for job in jobs}

        await app.submit_many(story, range(3))
        async with running(app):
            await eventually(ended)
            await eventually(lambda: collected(left))


async def collected(left: "list[weakref.ref[Held]]") -> bool:
    """The end of an attempt is written a moment before its task is over."""
    gc.collect()
    return len(left) == 3 and not any(ref() is not None for ref in left)


def contexts() -> list[int]:
    return [id(each) for each in gc.get_objects() if isinstance(each, Context)]


async def double(n: int) -> int:
    return 2 * n
