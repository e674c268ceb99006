"""What closing does to a runner that still runs."""

import asyncio

import pytest

from retoma import Context, Retoma
from retoma.engine.rules.events import EventType


async def test_an_error_beside_a_runner_ends_the_runner_and_then_the_program(database_url):
    """A runner whose database is gone would try to write to it for ever."""
    at_work = asyncio.Event()
    app = Retoma(database_url)

    @app.job
    async def hold(ctx: Context) -> None:
        at_work.set()
        await asyncio.sleep(60)

    async def fail_beside_it() -> None:
        async with app:
            await app.submit(hold)
            running.append(asyncio.create_task(app.run(beat=0.05, tick=0.2)))
            await at_work.wait()
            raise LookupError("mine")

    running: list[asyncio.Task[None]] = []
    with pytest.raises(LookupError, match="mine"):
        await asyncio.wait_for(fail_beside_it(), 20)

    assert running[0].cancelled()
    async with Retoma(database_url) as later:
        [job] = await later.jobs()
        events = [event.type for event in await later.events(job.id)]
        assert [EventType.SUBMITTED, EventType.CLAIMED] == events  # its end was not made up


async def test_what_a_cancelled_runner_held_is_taken_back_without_waiting_for_its_lease(
    database_url,
):
    at_work = asyncio.Event()
    async with Retoma(database_url) as app:

        @app.job
        async def hold(ctx: Context) -> str:
            if ctx.epoch == 1:
                at_work.set()
                await asyncio.sleep(60)
            return "held again"

        job = await app.submit(hold)
        first = asyncio.create_task(app.run())
        await at_work.wait()
        first.cancel()
        await asyncio.wait([first])

        await asyncio.wait_for(app.run(until_idle=True), 20)

        assert '"held again"' == (await app.get(job.id)).result
        assert ["released", "done"] == [each.ended for each in await app.attempts(job.id)]
        assert 0 == (await app.get(job.id)).failures


async def test_closing_twice_does_nothing_more(database_url):
    app = Retoma(database_url)
    await app.upgrade()

    await app.close()
    await app.close()
    await Retoma(database_url).close()
