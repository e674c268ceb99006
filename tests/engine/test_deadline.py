"""A job's own deadline: waits and all attempts included, it has ended by then (E9)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from retoma import BadInput, Context, Job, Park, Retoma, Retry, Snooze, State, Transient
from retoma.engine.query import Event
from retoma.engine.testing import drain
from tests.engine.aids import eventually, run_past_its_deadline, running

MINUTES = Retry(base=600, cap=600, jitter=0)


class Teller:
    """A story that ends as it is told to, and knows how often it was told."""

    def __init__(self, *ends: Any) -> None:
        self.ends = list(ends)
        self.times = 0

    async def story(self, ctx: Context) -> Any:
        self.times += 1
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


def registered(app: Retoma, *ends: Any, **how: Any) -> Teller:
    teller = Teller(*ends)

    @app.job(name="story", **how)
    async def story(ctx: Context) -> Any:
        return await teller.story(ctx)

    return teller


async def waits(app: Retoma, job: int) -> Job | None:
    """The job, once an attempt of it has ended and it waits or is parked."""
    found = await app.get(job)
    return found if found.epoch > 0 and found.state in (State.WAITING, State.PARKED) else None


async def last_event(app: Retoma, job: int) -> Event:
    return (await app.events(job))[-1]


def buried_by_its_deadline(job: Job) -> bool:
    return (State.DEAD, "deadline", "deadline") == (job.state, job.reason, job.code)


async def test_e9_a_job_claimed_after_its_deadline_is_buried_and_its_story_not_told(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        teller = registered(app, "never")
        late = await app.submit("story", deadline="2h")
        in_time = await app.submit("story", deadline="3h")
        teller.ends = ["in time"]

        test_clock.jump(2 * 3600 + 1)
        await drain(app)

        assert buried_by_its_deadline(await app.get(late.id))
        assert State.DONE is (await app.get(in_time.id)).state
        assert 1 == teller.times
        event = await last_event(app, late.id)
        assert ("buried", "the job's deadline has passed") == (
            event.type,
            event.details["message"],
        )
        assert ["failed"] == [each.ended for each in await app.attempts(late.id)]


async def test_e9_a_story_that_runs_past_the_deadline_is_stopped_and_buried(database_url):
    async with Retoma(database_url) as app:
        stopped = []

        @app.job(retry=Retry(attempts=3, base=0, cap=0))
        async def story(ctx: Context) -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                stopped.append(ctx.epoch)
                raise

        job = await run_past_its_deadline(app, story, stopped)

        assert [1] == stopped
        assert buried_by_its_deadline(job)


async def test_a_timeout_before_the_deadline_is_a_failed_attempt_like_any_other(database_url):
    async with Retoma(database_url) as app:

        @app.job(timeout=0.05, retry=Retry(attempts=2, base=0, cap=0))
        async def story(ctx: Context) -> None:
            await asyncio.sleep(60)

        job = await app.submit(story, deadline="1h")
        await drain(app)

        found = await app.get(job.id)
        assert (State.DEAD, "exhausted", "timeout", 2) == (
            found.state, found.reason, found.code, found.failures,
        )  # fmt: skip


@pytest.mark.parametrize(
    "end", [Snooze(3600), Transient("503"), Transient("429", retry_after=900)], ids=repr
)
async def test_e9_neither_a_snooze_nor_a_retry_waits_past_the_deadline(
    database_url, test_clock, end
):
    async with Retoma(database_url) as app:
        teller = registered(app, end, "never", retry=MINUTES)
        job = await app.submit("story", deadline="5m")
        async with running(app):
            found = await eventually(lambda: waits(app, job.id))

        assert found is not None
        assert found.run_at is not None
        assert found.created_at is not None
        waited = found.run_at - found.created_at
        assert timedelta(seconds=299) < waited <= timedelta(seconds=300.5)

        test_clock.jump(301)
        await drain(app)

        assert buried_by_its_deadline(await app.get(job.id))
        assert 1 == teller.times


async def test_a_wait_that_ends_before_the_deadline_is_not_made_shorter(
    database_url, test_clock
):
    async with Retoma(database_url) as app:
        teller = registered(app, Snooze(60), "done")
        job = await app.submit("story", deadline="5m")
        async with running(app):
            found = await eventually(lambda: waits(app, job.id))

        ended = await last_event(app, job.id)
        assert found is not None
        assert found.run_at is not None
        assert timedelta(seconds=59) < found.run_at - ended.at < timedelta(seconds=61)

        test_clock.jump(61)
        await drain(app)

        assert State.DONE is (await app.get(job.id)).state
        assert 2 == teller.times


async def test_a_job_that_is_resumed_after_its_deadline_is_buried(database_url, test_clock):
    async with Retoma(database_url) as app:
        teller = registered(app, Park("look at me"), "never")
        job = await app.submit("story", deadline="5m")
        await drain(app)
        assert State.PARKED is (await app.get(job.id)).state

        test_clock.jump(301)
        await app.resume(job.id)
        await drain(app)

        assert buried_by_its_deadline(await app.get(job.id))
        assert 1 == teller.times


async def test_again_is_a_fresh_life_without_the_old_deadline(database_url, test_clock):
    async with Retoma(database_url) as app:
        teller = registered(app, "done at last")
        job = await app.submit("story", deadline="5m")
        test_clock.jump(301)
        await drain(app)
        assert buried_by_its_deadline(await app.get(job.id))

        await app.retry(job.id)
        test_clock.jump(3600)
        await drain(app)

        found = await app.get(job.id)
        assert (State.DONE, 2, None) == (found.state, found.generation, found.reason)
        assert 1 == teller.times


async def test_every_job_of_a_batch_has_the_deadline_of_its_submission(
    database_url, test_clock
):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context, n: int) -> int:
            return n

        plain = await app.submit_many(story, range(3), deadline=timedelta(minutes=5))
        keyed = await app.submit_many(story, range(2), keys=["a", "b"], deadline=300)
        test_clock.jump(301)
        await drain(app)

        assert {State.DEAD: 3} == await plain.counts()
        assert {State.DEAD: 2} == await keyed.counts()


@pytest.mark.parametrize(
    "nonsense",
    [0, "0s", -1, timedelta(seconds=-1), "soon", "", float("nan"), float("inf"), True, [], {}],
    ids=repr,
)
async def test_a_deadline_that_is_none_is_refused_and_nothing_submitted(database_url, nonsense):
    async with Retoma(database_url) as app:
        registered(app)

        with pytest.raises(BadInput):
            await app.submit("story", deadline=nonsense)
        with pytest.raises(BadInput):
            await app.submit_many("story", [None], deadline=nonsense)

        assert [] == await app.jobs()


async def test_a_job_that_may_not_start_before_its_deadline_is_refused(database_url):
    async with Retoma(database_url) as app:
        registered(app)

        with pytest.raises(BadInput, match="deadline"):
            await app.submit("story", delay="2h", deadline="1h")

        assert [] == await app.jobs()
