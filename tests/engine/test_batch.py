"""Jobs submitted together, seen as one."""

import asyncio
from typing import Any

import pytest

from retoma import Context, NotFound, Permanent, Retoma, Skip, State
from retoma.engine.batch import LOOK, Progress
from retoma.engine.testing import FakeClock, drain
from tests.engine.aids import eventually


def test_progress_is_the_share_that_has_ended():
    progress = Progress({State.WAITING: 2, State.RUNNING: 1, State.DONE: 4, State.DEAD: 1})

    assert (8, 5, 0.625, False) == (
        progress.total,
        progress.ended,
        progress.share,
        progress.finished,
    )
    assert Progress({State.DONE: 1, State.SKIPPED: 1}).finished


def test_a_parked_job_keeps_its_batch_open():
    assert not Progress({State.DONE: 9, State.PARKED: 1}).finished


def test_an_empty_batch_is_through():
    assert (1.0, True) == (Progress({}).share, Progress({}).finished)


async def test_q4_the_counts_of_a_batch_add_up_to_its_jobs(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, n: int) -> Any:
            if n % 3 == 0:
                raise Permanent("threes are bad")
            return Skip("ones are known") if n % 3 == 1 else n

        batch = await app.submit_many(work, range(30), name="lote-42")
        other = await app.submit_many(work, range(3))
        waiting = await batch.counts()
        await drain(app)

        assert {State.WAITING: 30} == waiting
        assert {State.DONE: 10, State.SKIPPED: 10, State.DEAD: 10} == await batch.counts()
        assert {State.DONE: 1, State.SKIPPED: 1, State.DEAD: 1} == await other.counts()
        assert (await batch.progress()).finished


async def test_whoever_waits_for_a_batch_is_told_when_it_is_through(database_url):
    clock = FakeClock()
    async with Retoma(database_url, clock=clock) as app, Retoma(database_url) as other:

        @other.job
        async def work(ctx: Context, n: int) -> int:
            return n

        app.kinds.add(work.kind)  # type: ignore[attr-defined]
        batch = await app.submit_many(work, range(3))
        waiter = asyncio.create_task(batch.wait())

        async def asleep() -> int:
            return clock.asleep

        await eventually(asleep)
        early = waiter.done()
        await drain(other)
        clock.advance(LOOK)

        assert not early
        assert {State.DONE: 3} == (await waiter).counts


async def test_a_batch_is_found_again_by_its_number(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def work(ctx: Context, n: int) -> int:
            return n

        first = await app.submit_many(work, range(2), name="monday")
        second = await app.submit_many(work, range(3), name="tuesday")

        assert ["tuesday", "monday"] == [batch.name for batch in await app.batches()]
        assert [first.id] == [batch.id for batch in await app.batches(before=second.id)]
        assert {State.WAITING: 2} == await (await app.batch(first.id)).counts()
        with pytest.raises(NotFound, match="there is no batch 99"):
            await app.batch(99)
