"""Stories that take too long, do not let go, or do not move: they cost themselves, and no neighbour."""

import asyncio
import json
import threading
from contextlib import suppress
from typing import Any

import pytest

from retoma import BadInput, Context, Retoma, Retry, State
from retoma.db import adhoc
from retoma.engine.run.runner_options import RunnerOptions
from retoma.engine.run.running_jobs import ABANDONED
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE, eventually, rows, run_past_its_deadline, running

ONCE = Retry(attempts=1)
TAKEN = adhoc("UPDATE jobs SET epoch = epoch + 1")


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).ended


async def told(app: Retoma, job: int, kind: str) -> list[Any]:
    return [event for event in await app.events(job) if event.type == kind]


async def cling(until: asyncio.Event) -> None:
    """Swallows every cancellation."""
    while not until.is_set():
        with suppress(asyncio.CancelledError):
            await until.wait()


# --- timeouts of steps


async def test_a_step_past_its_time_has_failed_and_may_be_caught(database_url):
    async with Retoma(database_url) as app:

        async def slow() -> None:
            await asyncio.sleep(60)

        @app.job(retry=ONCE)
        async def story(ctx: Context, catch: bool) -> Any:
            try:
                return await ctx.step("slow", slow, timeout="50ms")
            except TimeoutError:
                if catch:
                    return "did without"
                raise

        caught, raised = await app.submit(story, True), await app.submit(story, False)
        await drain(app)

        found, event = await app.get(raised.id), (await app.events(raised.id))[-1]
        assert '"did without"' == (await app.get(caught.id)).result
        assert (State.DEAD, "timeout") == (found.state, found.code)
        assert "step slow took longer than 0.05 s" == event.details["message"]


async def test_a_timeout_of_a_thread_leaves_the_thread_alone(database_url):
    async with Retoma(database_url) as app:
        release = threading.Event()

        @app.job(retry=ONCE)
        async def story(ctx: Context) -> Any:
            return await ctx.step(
                "wait", lambda: release.wait(20), where="thread", timeout="50ms"
            )

        job = await app.submit(story)
        await drain(app)
        release.set()

        assert "timeout" == (await app.get(job.id)).code


async def test_a_timeout_of_a_loop_is_for_each_of_its_items(database_url):
    async with Retoma(database_url) as app:

        async def nap(ms: int) -> int:
            await asyncio.sleep(ms / 1000)
            return ms

        @app.job(retry=ONCE)
        async def story(ctx: Context) -> Any:
            return await ctx.each("nap", [100] * 66, nap, concurrency=2, timeout="3s")

        job = await app.submit(story)
        await drain(app)

        assert [100] * 66 == json.loads((await app.get(job.id)).result or "")


async def test_a_step_that_swallows_its_timeout_is_abandoned_with_its_attempt(database_url):
    async with Retoma(database_url) as app:
        go_on = asyncio.Event()

        @app.job(retry=ONCE)
        async def story(ctx: Context) -> Any:
            return await ctx.step("cling", cling, go_on, timeout="50ms")

        job = await app.submit(story)
        await drain(app, let_go=0.1)
        event = (await app.events(job.id))[-1]
        go_on.set()

        assert ("buried", "timeout") == (event.type, event.details["code"])
        assert "step cling took longer than 0.05 s" == event.details["message"]


# --- abandoned


async def test_e30_a_story_that_swallows_its_timeout_is_abandoned_and_its_slot_is_free(
    database_url,
):
    async with Retoma(database_url) as app:
        go_on = asyncio.Event()
        late: list[str] = []

        async def pay() -> str:
            late.append("paid")
            return "receipt"

        @app.job(timeout="100ms", retry=ONCE)
        async def clings(ctx: Context) -> str:
            await cling(go_on)
            late.append("woke")
            return await ctx.step("pay", pay)

        @app.job
        async def neighbour(ctx: Context, n: int) -> int:
            return n

        job = await app.submit(clings)
        await app.submit_many(neighbour, range(5))
        async with running(app, slots=1, let_go=0.1):
            await eventually(lambda: ended(app, job.id))
            found, event = await app.get(job.id), (await app.events(job.id))[-1]
            await eventually(lambda: all_done(app, 5))
            go_on.set()
            await asyncio.sleep(0.1)

        assert (State.DEAD, "timeout") == (found.state, found.code)
        assert "the attempt took longer than 0.1 s" == event.details["message"]
        assert "in cling" in event.details["stack"]
        assert ["woke"] == late, "what it does later begins no step"
        assert event.seq == (await app.events(job.id))[-1].seq


async def all_done(app: Retoma, n: int) -> bool:
    return (await app.insights.counts()).get(State.DONE, 0) == n


async def test_e30_a_story_past_the_deadline_of_its_job_is_abandoned_and_buried(database_url):
    async with Retoma(database_url) as app:
        go_on = asyncio.Event()

        begun = []

        @app.job(timeout="1h", retry=AT_ONCE)
        async def clings(ctx: Context) -> None:
            begun.append(ctx.epoch)
            await cling(go_on)

        found = await run_past_its_deadline(app, clings, begun, let_go=0.1)
        go_on.set()

        assert [1] == begun
        assert (State.DEAD, "deadline", "deadline") == (found.state, found.reason, found.code)
        assert "in cling" in (await app.events(found.id))[-1].details["stack"]


async def test_e30_what_an_abandoned_step_brings_home_is_refused(database_url):
    """Its next attempt is at work, perhaps on the same runner: the epoch tells them apart."""
    async with Retoma(database_url) as app:
        go_on = asyncio.Event()

        async def work(epoch: int) -> int:
            if epoch == 1:
                await cling(go_on)
            return epoch

        @app.job(timeout="1s", retry=AT_ONCE)
        async def story(ctx: Context) -> int:
            result = await ctx.step("work", work, ctx.epoch)
            if ctx.epoch == 2:
                go_on.set()
                await asyncio.sleep(0.05)
            return result

        job = await app.submit(story)
        await drain(app, let_go=0.05)

        assert "2" == (await app.get(job.id)).result
        assert ["2"] == [step.value for step in await app.steps(job.id)]
        assert ["failed", "done"] == [each.ended for each in await app.attempts(job.id)]


async def test_e13_a_story_that_swallows_its_cancel_is_canceled_all_the_same(database_url):
    async with Retoma(database_url) as app:
        begun, go_on = asyncio.Event(), asyncio.Event()

        @app.job
        async def clings(ctx: Context) -> None:
            begun.set()
            await cling(go_on)

        job = await app.submit(clings)
        async with running(app, let_go=0.1):
            await begun.wait()
            await app.cancel(job.id)
            await eventually(lambda: ended(app, job.id))
            go_on.set()

        assert State.CANCELED is (await app.get(job.id)).state


async def test_e29_an_error_that_comes_of_being_stopped_spends_no_attempt(database_url):
    async with Retoma(database_url) as app:
        begun = asyncio.Event()

        @app.job(retry=ONCE)
        async def story(ctx: Context) -> None:
            begun.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError as error:
                raise RuntimeError("the connection was closed") from error

        job = await app.submit(story)
        async with running(app, grace=0.0):
            await begun.wait()

        found = await app.get(job.id)
        assert (State.WAITING, 0) == (found.state, found.failures)
        assert ["released"] == [each.ended for each in await app.attempts(job.id)]


async def test_a_task_that_a_story_forgot_and_that_clings_does_not_hold_up_its_end(
    database_url,
):
    async with Retoma(database_url) as app:
        go_on = asyncio.Event()

        @app.job
        async def story(ctx: Context) -> str:
            asyncio.create_task(ctx.step("cling", cling, go_on))  # noqa: RUF006
            await asyncio.sleep(0.05)
            return "done with it"

        job = await app.submit(story)
        await drain(app, let_go=0.1)
        go_on.set()

        assert '"done with it"' == (await app.get(job.id)).result


def test_e29_whoever_closes_the_loop_does_not_wait_for_an_abandoned_story(database_url):
    async def main() -> State:
        async with Retoma(database_url) as app:

            @app.job(timeout="100ms", retry=ONCE)
            async def clings(ctx: Context) -> None:
                await cling(asyncio.Event())

            job = await app.submit(clings)
            await drain(app, let_go=0.05)
            return (await app.get(job.id)).state

    assert State.DEAD is asyncio.run(main())


async def test_e30_a_runner_with_too_many_abandoned_stories_begins_a_new_life(database_url):
    async with Retoma(database_url) as app:
        go_on = asyncio.Event()

        @app.job(timeout="100ms", retry=ONCE)
        async def clings(ctx: Context) -> None:
            await cling(go_on)

        @app.job
        async def neighbour(ctx: Context) -> str:
            return "fine"

        await app.submit_many(clings, [None] * (ABANDONED + 1))
        async with running(app, slots=4, let_go=0.05):

            async def two_lives() -> bool:
                return ["alive", "gone"] == sorted(
                    each.state for each in await app.runners.list()
                )

            await eventually(two_lives)
            after = await app.submit(neighbour)
            await eventually(lambda: ended(app, after.id))
            go_on.set()

        assert State.DONE is (await app.get(after.id)).state
        dead = await app.jobs(state=State.DEAD)
        assert {("timeout", 1)} == {(job.code, job.epoch) for job in dead}
        assert ABANDONED + 1 == len(dead)


# --- silence


async def test_a_silent_story_is_told_of_with_its_stack_and_goes_on(database_url):
    async with Retoma(database_url) as app:
        go_on = asyncio.Event()

        async def think() -> str:
            await go_on.wait()
            return "thought"

        @app.job(stall="4s")
        async def story(ctx: Context, reports: bool) -> str:
            while reports and not go_on.is_set():
                await ctx.progress(0.5)
                await asyncio.sleep(0.1)
            return await ctx.step("think", think)

        silent, moving = await app.submit(story, False), await app.submit(story, True)
        async with running(app):
            [event] = await eventually(lambda: told(app, silent.id, "stalled"))
            state = (await app.get(silent.id)).state
            go_on.set()
            await eventually(lambda: ended(app, silent.id))

        assert State.RUNNING is state
        assert "in think" in event.details["stack"]
        assert "no step was saved and no progress reported for 4 s" == event.details["message"]
        assert 1 == event.epoch
        assert '"thought"' == (await app.get(silent.id)).result
        assert [] == await told(app, moving.id, "stalled")


async def test_a_setting_stops_what_has_stalled(database_url):
    async with Retoma(database_url) as app:

        @app.job(stall="500ms", retry=ONCE)
        async def story(ctx: Context) -> None:
            await asyncio.sleep(60)

        job = await app.submit(story)
        await drain(app, stop_stalled=True)

        found = await app.get(job.id)
        assert (State.DEAD, "stalled") == (found.state, found.code)
        assert ["submitted", "claimed", "stalled", "buried"] == [
            event.type for event in await app.events(job.id)
        ]
        assert "asyncio.sleep(60)" in (await app.events(job.id))[-1].details["stack"]


async def test_a_stall_is_not_told_by_a_runner_that_no_longer_holds_the_job(database_url):
    async with Retoma(database_url) as app:
        go_on = asyncio.Event()

        taken = asyncio.Event()
        database = await app.database()

        @app.job(stall="2s")
        async def story(ctx: Context) -> None:
            await database.write(lambda tx: tx.run(TAKEN), verb="test")
            taken.set()
            await go_on.wait()

        await app.submit(story)
        async with running(app, tick=60):
            await taken.wait()
            await asyncio.sleep(3.2)  # a stall, and a look for one
            stalls = await rows(database, "SELECT 1 FROM events WHERE type = 'stalled'")
            go_on.set()

        assert [] == stalls


@pytest.mark.parametrize(
    "knobs", [{"let_go": -1.0}, {"loop_limit": -1.0}], ids=["let_go", "loop_limit"]
)
def test_a_runner_with_a_negative_limit_is_refused(knobs):
    with pytest.raises(BadInput, match="must not be negative"):
        RunnerOptions(**knobs)


@pytest.mark.parametrize(
    "how", [{"stall": 0}, {"stall": "soon"}, {"memory": "1KB"}, {"cpu": 0}]
)
def test_a_kind_with_a_limit_that_means_nothing_is_refused(how):
    app = Retoma("sqlite:///nowhere.db")

    with pytest.raises(BadInput):

        @app.job(**how)
        async def story(ctx: Context) -> None: ...

    assert [] == list(app.kinds)
