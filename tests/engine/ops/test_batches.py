"""Jobs submitted together, seen as one."""

import asyncio
from typing import Any

import pytest

from retoma import Context, NotFound, Permanent, Retoma, Skip, State
from retoma.codec import decode
from retoma.engine import store
from retoma.engine.ops.batches import LOOK, Progress
from retoma.engine.rules.states import BatchState
from retoma.engine.store.verb import SQL
from retoma.engine.testing import FakeClock, drain
from tests.engine.aids import boot, eventually, rows
from tests.engine.test_batch_verbs import DONE, batch_of, dead, run_all


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


def test_progress_tells_the_done_from_the_failed():
    progress = Progress({State.DONE: 4, State.SKIPPED: 1, State.DEAD: 2, State.RUNNING: 1})

    assert (4, 2, BatchState.RUNNING) == (progress.done, progress.failed, progress.state)


@pytest.mark.parametrize(
    ("counts", "paused", "rate", "eta"),
    [
        ({State.WAITING: 30, State.RUNNING: 10, State.DONE: 60}, False, 2.0, 20),
        ({State.WAITING: 30, State.PARKED: 10, State.DONE: 60}, False, 2.0, 15),
        ({State.WAITING: 30}, False, 0.0, None),
        ({State.WAITING: 30}, True, 2.0, None),
        ({State.PARKED: 3, State.DONE: 1}, False, 2.0, None),
        ({State.DONE: 3, State.DEAD: 1}, False, 0.0, 0),
        ({}, False, 0.0, 0),
    ],
)
def test_the_end_is_foretold_from_the_pace_of_late(counts, paused, rate, eta):
    foretold = Progress(counts, paused, rate).eta

    assert eta == (None if foretold is None else foretold.total_seconds())


async def test_the_pace_of_a_batch_is_that_of_its_last_minutes(database_url, test_clock):
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 100), await boot(database, lease=10_000)
        before = await batch.progress()
        test_clock.jump(10)
        await run_all(app, *[DONE] * 20, me=me)
        fresh = await batch.progress()
        await database.write(store.fold_tallies, verb="fold")
        folded = await batch.progress()
        test_clock.jump(600)
        silent = await batch.progress()
        await run_all(app, *[DONE] * 30, me=me)
        awake = await batch.progress()

        assert (0.0, None) == (before.rate, before.eta)
        # Ten seconds, and what the test itself took: a machine may be busy.
        assert 20 / 40 < fresh.rate <= 2.0
        assert folded.rate <= fresh.rate <= folded.rate * 1.5
        assert fresh.eta is not None
        assert 40 <= fresh.eta.total_seconds() < 160
        assert (0.0, None) == (silent.rate, silent.eta)
        assert 30 / 180 <= awake.rate <= 30 / 60


async def finishings(app: Retoma) -> list[tuple[str, dict[str, int]]]:
    told = "SELECT subject, details FROM audit WHERE verb = 'batch.finished' ORDER BY id"
    return [(name, decode(text)) for name, text in await rows(await app.database(), told)]


async def test_the_fold_tells_once_of_each_finishing_of_a_batch(database_url):
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 3), await boot(database)
        other = await batch_of(app, 2, "tuesday")

        async def fold() -> list[tuple[str, dict[str, int]]]:
            await database.write(store.fold_tallies, verb="fold")
            return await finishings(app)

        await run_all(app, DONE, DONE, me=me)
        open_ = await fold()
        await run_all(app, *[dead()] * 2, DONE, me=me)
        ended = await fold()
        still = await fold()
        await batch.again()
        reopened = await fold()
        await run_all(app, *[DONE] * 3, me=me)
        await fold()
        await batch.again()
        await run_all(app, *[DONE] * 3, me=me)  # reopened and finished between two folds
        await fold()

        assert [] == open_
        assert ended == still == reopened
        first, second = str(batch.id), str(other.id)
        assert {first, second} == {name for name, _ in ended}
        assert [5] == [sum(sum(counts.values()) for _, counts in ended)]
        assert [first, first] == [name for name, _ in (await finishings(app))[2:]]
        assert {"done": 3} == (await finishings(app))[-1][1]


async def test_a_batch_whose_tallies_are_not_all_folded_is_left_to_the_next_fold(database_url):
    """What is folded says finished; what is not says that it was opened again."""
    async with Retoma(database_url) as app:
        database = await app.database()
        batch, me = await batch_of(app, 2), await boot(database)
        await run_all(app, DONE, DONE, me=me)
        await database.write(store.fold_tallies, verb="fold")
        await batch.again()

        touched = f'{{"{batch.id}": 1}}'
        await database.write(
            lambda tx: tx.run(SQL.tell_finished, batches=touched, actor="fold"),
            verb="fold",
        )

        assert 1 == len(await finishings(app))


async def test_of_k_folds_at_once_one_tells_that_a_batch_has_finished(database_url):
    async with Retoma(database_url) as app:
        batch, me = await batch_of(app, 40), await boot(await app.database())
        others = [Retoma(database_url) for _ in range(4)]
        databases = [await other.database() for other in others]

        for _ in range(4):
            await run_all(app, *[DONE] * 10, me=me)
            folds = [each.write(store.fold_tallies, verb="fold") for each in databases * 3]
            await asyncio.gather(*folds)

        await databases[0].write(store.fold_tallies, verb="fold")
        assert [(str(batch.id), {"done": 40})] == await finishings(app)
        for other in others:
            await other.close()


async def test_an_empty_batch_never_finishes_and_is_empty(database_url):
    async with Retoma(database_url) as app:
        batch = await batch_of(app, 0)
        await (await app.database()).write(store.fold_tallies, verb="fold")

        assert ([], BatchState.EMPTY) == (
            await finishings(app),
            (await batch.progress()).state,
        )


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

        assert ["tuesday", "monday"] == [batch.name for batch in await app.batches.list()]
        assert [first.id] == [batch.id for batch in await app.batches.list(before=second.id)]
        assert {State.WAITING: 2} == await (await app.batches.get(first.id)).counts()
        with pytest.raises(NotFound, match="there is no batch 99"):
            await app.batches.get(99)
