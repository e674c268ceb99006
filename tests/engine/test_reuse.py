"""What one job has made another may use again, until somebody says otherwise."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from retoma import BadInput, Context, Retoma, State
from retoma.engine.ops.retention import Keep, Retention
from retoma.engine.rules.events import EventType
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE, change

DAY = 86_400


def asking(app: Retoma, calls: list[Any], **how: Any) -> Any:
    @app.job(retry=AT_ONCE)
    async def label(ctx: Context, page: str) -> str:
        async def ask() -> str:
            calls.append(page)
            ctx.cost(provider="acme", tokens=10, usd=2)
            return page.upper()

        return await ctx.step("ask", ask, reuse={"page": page, "lang": "pt"}, **how)

    return label


async def test_a_result_is_used_again_by_another_job_and_what_that_saved_is_counted(
    database_url,
):
    calls: list[Any] = []
    async with Retoma(database_url) as app:
        label = asking(app, calls)
        first = await app.submit(label, "a")
        await drain(app)
        batch = await app.submit_many(label, ["a", "a", "b"])
        await drain(app)

        assert ["a", "b"] == sorted(calls)
        assert {State.DONE: 3} == await batch.counts()
        [cost] = await app.costs.of_batch(batch.id)
        assert (Decimal(2), Decimal(4)) == (cost.spent.usd, cost.saved.usd)
        assert {"tokens": 20} == cost.saved.units

        again = next(job for job in await app.jobs(batch=batch.id) if job.payload == '"a"')
        assert '"A"' == again.result
        [step] = await app.steps(again.id)
        assert first.id == step.cost["from"]
        saved = [e for e in await app.events(again.id) if e.type is EventType.STEP_SAVED]
        assert [{"step": "ask", "from": first.id}] == [event.details for event in saved]


async def test_the_order_of_a_key_does_not_matter_but_version_step_and_kind_do(database_url):
    calls: list[str] = []
    async with Retoma(database_url) as app:

        async def ask(what: str) -> str:
            calls.append(what)
            return what

        @app.job
        async def one(ctx: Context) -> None:
            await ctx.step("ask", ask, "one", reuse={"a": 1, "b": 2})

        @app.job
        async def same(ctx: Context) -> None:
            """Of another kind."""
            await ctx.step("ask", ask, "kind", reuse={"a": 1, "b": 2})

        @app.job(name="one", version=2)
        async def newer(ctx: Context, what: str) -> None:
            if what == "order":
                await ctx.step("ask", ask, what, reuse={"b": 2, "a": 1})
            elif what == "version":
                await ctx.step("ask", ask, what, version=2, reuse={"a": 1, "b": 2})
            elif what == "step":
                await ctx.step("other", ask, what, reuse={"a": 1, "b": 2})
            else:
                await ctx.step("ask", ask, what, reuse={"a": 1, "b": 3})

        await app.submit(one)
        await drain(app)
        await app.submit(same)
        await app.submit_many(newer, ["order", "version", "step", "key"])
        await drain(app)

        assert ["key", "kind", "one", "step", "version"] == sorted(calls)


async def test_a_result_outlives_the_job_that_made_it(database_url, test_clock):
    calls: list[Any] = []
    async with Retoma(database_url) as app:
        label = asking(app, calls)
        first = await app.submit(label, "a")
        test_clock.jump(0)
        await drain(app)
        test_clock.jump(3 * DAY)
        retired = await app.retention.run_once(done=DAY)
        assert 1 == retired.jobs

        job = await app.submit(label, "a")
        await drain(app)

        assert ["a"] == calls
        assert '"A"' == (await app.get(job.id)).result
        [step] = await app.steps(job.id)
        assert first.id == step.cost["from"]


async def test_a_result_that_is_too_old_is_made_anew_and_goes(database_url, test_clock):
    calls: list[Any] = []
    keep = Keep(reuse=DAY)
    async with Retoma(database_url) as app:
        label = asking(app, calls)
        await app.submit(label, "a")
        test_clock.jump(0)
        await drain(app, keep=keep)
        test_clock.jump(2 * DAY)
        await app.submit(label, "a")
        await drain(app, keep=keep)
        assert ["a", "a"] == calls

        retired = await Retention(keep, "me").run_once(await app.database())

        assert 0 == retired.reuse, "the newer one has taken its place"
        test_clock.jump(2 * DAY)
        retired = await Retention(keep, "me").run_once(await app.database())
        assert 1 == retired.reuse
        assert [] == await app.reuse.list()


@pytest.mark.parametrize(
    ("which", "gone"),
    [
        ({"kind": "label", "step": "ask", "key": {"lang": "pt", "page": "a"}}, 1),
        ({"step": "ask"}, 3),
        ({"kind": "other"}, 0),
        ({"version": 2}, 0),
        ({"before": datetime(2020, 1, 1, tzinfo=UTC)}, 0),
        ({"before": datetime(2199, 1, 1, tzinfo=UTC)}, 3),
        ({"everything": True}, 3),
    ],
)
async def test_what_is_forgotten_is_made_again(database_url, which, gone):
    calls: list[Any] = []
    async with Retoma(database_url) as app:
        label = asking(app, calls)
        await app.submit_many(label, ["a", "b", "c"])
        await drain(app)

        assert gone == await app.reuse.forget(**which)

        assert 3 - gone == len(await app.reuse.list())
        await app.submit_many(label, ["a", "b", "c"])
        await drain(app)
        assert 3 + gone == len(calls)


@pytest.mark.parametrize(
    "which",
    [
        {},
        {"everything": True, "step": "ask"},
        {"key": object()},
        {"before": datetime(2020, 1, 1)},  # noqa: DTZ001 — that is what is wrong with it
    ],
)
async def test_who_does_not_say_what_to_forget_forgets_nothing(tmp_path, which):
    async with Retoma(f"sqlite:///{tmp_path / 'work.db'}") as app:
        label = asking(app, [])
        await app.submit(label, "a")
        await drain(app)

        with pytest.raises(BadInput):
            await app.reuse.forget(**which)

        assert 1 == len(await app.reuse.list())


async def test_afresh_is_afresh_and_takes_the_place_of_the_older(database_url):
    calls: list[Any] = []
    async with Retoma(database_url) as app:
        label = asking(app, calls)
        job = await app.submit(label, "a")
        await drain(app)

        await app.retry(job.id, fresh=True)
        await drain(app)

        assert ["a", "a"] == calls
        [offer] = await app.reuse.list()
        assert job.id == offer.job


async def test_a_value_the_function_no_longer_returns_is_made_anew(database_url):
    calls: list[int] = []
    async with Retoma(database_url) as app:

        @app.job
        async def count(ctx: Context) -> int:
            async def ask() -> int:
                calls.append(1)
                return 7

            return await ctx.step("ask", ask, reuse="x")

        await app.submit(count)
        await drain(app)
        await change(await app.database(), "UPDATE reuse SET value = '\"old\"'")
        job = await app.submit(count)
        await drain(app)

        assert 2 == len(calls)
        assert "7" == (await app.get(job.id)).result
        await app.submit(count)
        await drain(app)
        assert 2 == len(calls), "the newer one has taken its place"


async def test_what_must_not_happen_twice_is_not_used_again(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def buy(ctx: Context) -> None:
            async def order() -> None: ...

            await ctx.step("order", order, once=True, reuse="x")

        job = await app.submit(buy)
        await drain(app)

        assert "cannot be used again" in await app.explain(job.id)


async def test_a_durable_loop_uses_again_item_by_item(database_url):
    calls: list[int] = []
    async with Retoma(database_url) as app:

        @app.job
        async def squares(ctx: Context, items: list[int]) -> list[int]:
            async def square(n: int) -> int:
                calls.append(n)
                return n * n

            return await ctx.each("square", items, square, reuse=lambda n: n)

        await app.submit(squares, [1, 2])
        await drain(app)
        job = await app.submit(squares, [2, 3, 1])
        await drain(app)

        assert [1, 2, 3] == sorted(calls)
        assert "[4,9,1]" == (await app.get(job.id)).result
