"""A step that is a transaction: its writes, its submissions and itself, together or not at all."""

import asyncio
from typing import Any

import pytest

from retoma import Context, Permanent, Retoma, State, Transient
from retoma.engine.run.transaction import Transaction
from retoma.testing import crash_at, drain
from tests.engine.aids import AT_ONCE, change, eventually, running

TABLE = "CREATE TABLE goods (name text PRIMARY KEY, n integer NOT NULL)"


async def shop(app: Retoma) -> None:
    await app.write(lambda tx: tx.run(TABLE))


async def goods(app: Retoma) -> list[tuple[str, int]]:
    return await app.write(lambda tx: tx.all("SELECT name, n FROM goods ORDER BY name"))


def put(tx: Transaction, name: str) -> str:
    tx.run("INSERT INTO goods (name, n) VALUES (:name, 1)", name=name)
    return name


async def test_what_it_writes_and_its_step_are_there_together(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def follow(ctx: Context, name: str) -> str:
            return name

        def put_and_follow(tx: Transaction, name: str) -> int:
            put(tx, name)
            return tx.submit(follow, name, key=name).id

        @app.job(retry=AT_ONCE)
        async def work(ctx: Context, name: str) -> int:
            job = await ctx.write("put", put_and_follow, name)
            if ctx.attempt == 1:
                raise Transient("once more")
            return job

        await shop(app)
        job = await app.submit(work, "lamp")
        await drain(app)
        done = await app.get(job.id)
        assert (done.state, done.failures) == (State.DONE, 1)
        assert await goods(app) == [("lamp", 1)]  # twice would have broken its key
        [other] = await app.jobs(kind="follow")
        assert (str(other.id), other.state) == (done.result, State.DONE)
        assert [step.name for step in await app.steps(job.id)] == ["put"]


async def test_what_it_raises_undoes_all_of_it(database_url):
    async with Retoma(database_url) as app:

        def put_twice(tx: Transaction) -> None:
            put(tx, "lamp")
            raise Permanent("no room", code="full")

        @app.job
        async def work(ctx: Context, _: str) -> None:
            await ctx.write("put", put_twice)

        await shop(app)
        job = await app.submit(work, "")
        await drain(app)
        done = await app.get(job.id)
        assert (done.state, done.code) == (State.DEAD, "full")
        assert await goods(app) == []
        assert await app.steps(job.id) == []


@pytest.mark.parametrize(
    ("point", "harm"),
    [
        ("effect.before_commit", "exception"),
        ("effect.after_commit", "exception"),
        ("effect.after_commit", "reply_lost"),
    ],
)
async def test_e5_whatever_happens_around_its_commit_there_is_one_effect(
    database_url, point, harm
):
    async with Retoma(database_url) as app:

        @app.job(retry=AT_ONCE)
        async def work(ctx: Context, name: str) -> str:
            return await ctx.write("put", put, name)

        await shop(app)
        job = await app.submit(work, "lamp")
        with crash_at(point, harm):
            await drain(app)
        done = await app.get(job.id)
        assert (done.state, done.result) == (State.DONE, '"lamp"')
        assert await goods(app) == [("lamp", 1)]


async def test_e3_who_no_longer_holds_the_job_writes_nothing(database_url):
    async with Retoma(database_url) as app:
        stolen, gone_on = asyncio.Event(), asyncio.Event()

        @app.job(retry=AT_ONCE)
        async def work(ctx: Context, name: str) -> str:
            if ctx.epoch == 1:
                gone_on.set()
                await stolen.wait()
            return await ctx.write("put", put, f"{name} {ctx.epoch}")

        await shop(app)
        job = await app.submit(work, "lamp")
        async with running(app):
            await gone_on.wait()
            await change(
                await app.database(),
                "UPDATE jobs SET epoch = epoch + 1, state = 'waiting', runner = NULL WHERE id = 1",
            )
            stolen.set()
            refused = await eventually(app.runners.refused_writes)
        assert refused == 1
        assert "lamp 1" not in [name for name, _ in await goods(app)]
        assert job.id == 1


async def test_e13_nothing_is_written_for_a_job_that_is_to_be_canceled(database_url):
    async with Retoma(database_url) as app:
        canceled, begun = asyncio.Event(), asyncio.Event()

        @app.job
        async def work(ctx: Context, name: str) -> str:
            begun.set()
            await asyncio.shield(canceled.wait())
            return await ctx.write("put", put, name)

        await shop(app)
        job = await app.submit(work, "lamp")
        async with running(app):
            await begun.wait()
            await app.cancel(job.id)
            canceled.set()
            await eventually(lambda: ended(app, job.id))
        assert (await app.get(job.id)).state is State.CANCELED
        assert await goods(app) == []


async def ended(app: Retoma, job: int) -> bool:
    return (await app.get(job)).state in (State.CANCELED, State.DONE)


async def test_an_async_function_is_refused(database_url):
    async with Retoma(database_url) as app:

        async def put_async(tx: Transaction) -> None: ...

        @app.job(retry=AT_ONCE)
        async def work(ctx: Context, _: str) -> Any:
            return await ctx.write("put", put_async)

        job = await app.submit(work, "")
        await drain(app)
        assert "plain function" in str([e.details for e in await app.events(job.id)])
