"""A job at one glance: the newest of all it has, the newest first."""

import pytest

from retoma import Context, NotFound, Retoma, Retry, Transient
from retoma.engine.query.jobs import READ
from retoma.engine.rules.errors import BadInput


def stories(url: str) -> Retoma:
    app = Retoma(url)

    @app.job(retry=Retry(attempts=3, base=0, cap=0))
    async def long(ctx: Context, n: int) -> int:
        for step in range(n):
            await ctx.step(f"step {step}", _value)
        raise Transient("not yet", code="LATER")

    return app


async def _value() -> str:
    return "x" * (READ + 10)


async def test_a_glance_has_the_newest_first_and_says_what_is_older(database_url):
    async with stories(database_url) as app:
        job = await app.submit("long", 5)
        await app.run(until_idle=True)
        lines = await app.events(job.id)

        glance = await app.see(job.id, limit=4)
        before = await app.see(job.id, before=glance.events[-1].seq, limit=200)

        assert [each.seq for each in lines][::-1][:4] == [each.seq for each in glance.events]
        assert glance.older
        assert len(lines) == len(glance.events) + len(before.events)
        assert not before.older
        assert [3, 2, 1] == [each.epoch for each in glance.attempts]
        assert "dead" == glance.job.state
        assert ["step 4", "step 3", "step 2", "step 1"] == [each.name for each in glance.steps]
        assert READ == len(glance.steps[0].value or "")


async def test_a_glance_at_nothing_or_too_much_is_refused(database_url):
    async with stories(database_url) as app:
        with pytest.raises(NotFound):
            await app.see(1)
        job = await app.submit("long", 1)
        for limit in (0, 201):
            with pytest.raises(BadInput):
                await app.see(job.id, limit=limit)
