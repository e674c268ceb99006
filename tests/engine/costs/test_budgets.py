"""A budget that is spent sets jobs aside, with all they have saved, until there is money again."""

import asyncio
from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

import pytest

from retoma import BadInput, Batch, Context, NotFound, Retoma, State
from retoma.engine.costs.budgets import Budgets
from retoma.engine.testing import drain
from tests.engine.aids import eventually, rows, running

DAY = 86_400


def a_paying_kind(app: Retoma, paid: list[int], *, provider: str = "acme") -> Any:
    @app.job(application="quotes")
    async def label(ctx: Context, n: int) -> int:
        async def ask(half: int) -> int:
            paid.append(n)
            ctx.cost(provider=provider, usd=1)
            return half

        first = await ctx.step("first", ask, 1, pays=provider)
        return first + await ctx.step("second", ask, 2, pays=provider)

    return label


def test_d9_of_steps_that_pay_the_latest_are_remembered(monkeypatch):
    monkeypatch.setattr("retoma.engine.costs.budgets.MOST_KNOWN", 2)
    budgets = Budgets(cast("Any", None), "me", "UTC")

    for step in ("one", "two", "three"):
        budgets.learn("label", step, "acme")

    assert [None, {"acme"}, {"acme"}] == [
        budgets.paid("label", step) for step in ("one", "two", "three")
    ]


async def test_a_batch_stops_at_its_budget_and_goes_on_when_that_is_raised(database_url):
    paid: list[int] = []
    async with Retoma(database_url) as app:
        label = a_paying_kind(app, paid)
        batch = await app.submit_many(label, range(10), budget="7 USD")

        await drain(app, slots=1)

        assert 7 == len(paid), "one at a time there is nothing under way beyond it"
        gate = f"budget:batch:{batch.id}"
        waiting = await app.jobs(state="waiting", limit=50)
        assert {gate} == {job.aside for job in waiting}
        assert {0} == {job.failures for job in waiting}, "no attempt was spent"
        half = next(job for job in waiting if job.checkpoint == "first")
        assert "7.00 USD of 7.00 USD" in await app.explain(half.id)
        assert gate in await app.explain(half.id)
        [seen] = await app.budgets.list()
        assert (True, True, 100) == (seen.warned, seen.shut, seen.share)

        await app.budgets.set("20 USD", batch=batch.id)
        await drain(app, slots=1)

        assert {State.DONE: 10} == await batch.counts()
        assert 20 == len(paid), "what was saved before the stop was not paid again"


async def test_a_warning_and_an_end_are_told_once_in_a_period(database_url):
    async with Retoma(database_url) as app:
        label = a_paying_kind(app, [])
        await app.budgets.set("10 USD", provider="acme", per="day")

        for jobs, told in ((3, []), (1, ["warned"]), (1, ["warned", "exhausted"])):
            await app.submit_many(label, range(jobs))
            await drain(app)
            audit = await rows(
                await app.database(),
                "SELECT verb FROM audit WHERE verb IN ('budget.warned', 'budget.exhausted')"
                " ORDER BY id",
            )
            assert [f"budget.{each}" for each in told] == [verb for (verb,) in audit]
        await app.submit_many(label, range(5))
        await drain(app)

        [[n]] = await rows(
            await app.database(),
            "SELECT count(*) FROM audit WHERE verb IN ('budget.warned', 'budget.exhausted')",
        )
        assert 2 == n


async def test_a_day_that_is_over_opens_the_gate_by_itself(database_url, test_clock):
    paid: list[int] = []
    async with Retoma(database_url) as app:
        label = a_paying_kind(app, paid)
        await app.budgets.set("4 USD", provider="acme", per="day")
        test_clock.jump(0)
        batch = await app.submit_many(label, range(5))

        async with running(app, tick=0.1, slots=1):
            for day in range(1, 3):
                await eventually(lambda: paid_so_far(paid, 4 * day))  # noqa: B023 — awaited here
                await eventually(lambda: all_aside(app, batch, "budget:provider:acme:day"))
                assert 4 * day == len(paid)
                test_clock.jump(DAY)
            await eventually(lambda: done(batch))

        assert 10 == len(paid)
        [seen] = await app.budgets.list()
        assert 2 == seen.spent.nanos // 10**9, "today's alone"
        assert {0} == {job.failures for job in await app.jobs(limit=50)}


async def paid_so_far(paid: list[int], n: int) -> bool:
    return len(paid) >= n


async def all_aside(app: Retoma, batch: Batch, gate: str) -> bool:
    counts = await batch.counts()
    if State.RUNNING in counts or State.WAITING not in counts:
        return False
    waiting = await app.jobs(state="waiting", limit=50)
    return {gate} == {job.aside for job in waiting}


async def done(batch: Batch) -> bool:
    return {State.DONE: 5} == await batch.counts()


async def test_an_application_has_its_own_budget_by_the_month(database_url):
    paid: list[int] = []
    async with Retoma(database_url) as app:
        label = a_paying_kind(app, paid)

        @app.job
        async def other(ctx: Context) -> None:
            async def ask() -> None:
                ctx.cost(provider="acme", usd=1)

            await ctx.step("ask", ask, pays="acme")

        await app.budgets.set("3 USD", application="quotes", per="month")
        await app.submit_many(label, range(4))
        free = await app.submit_many(other, [None] * 4)
        await drain(app, slots=1)

        assert 3 == len(paid)
        assert {State.DONE: 4} == await free.counts(), (
            "a kind without one is its own application"
        )
        [seen] = await app.budgets.list()
        assert "budget:application:quotes:month" == seen.budget.gate


async def test_a_step_that_was_seen_to_pay_is_stopped_without_being_declared(database_url):
    paid: list[int] = []
    async with Retoma(database_url) as app:

        @app.job
        async def label(ctx: Context, n: int) -> None:
            async def ask() -> None:
                paid.append(n)
                ctx.cost(provider="acme", usd=1)

            await ctx.step("ask", ask)
            await ctx.step("tidy", tidy)

        await app.budgets.set("2 USD", provider="acme", per="day")
        await app.submit_many(label, range(6))
        await drain(app, slots=1)

        assert 2 == len(paid)
        assert {State.DONE: 2, State.WAITING: 4} == await app.insights.counts()


async def tidy() -> None:
    """Costs nothing."""


async def test_reais_count_against_dollars_by_the_rate_that_is_set(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def label(ctx: Context) -> None:
            ctx.cost(provider="acme", brl=27)
            ctx.cost(provider="acme", usd=1)

        await app.budgets.set("10 USD", provider="acme", per="day")
        await app.submit(label)
        await drain(app)

        [unknown] = await app.budgets.list()
        assert ("1.00 USD", "27.00 BRL") == (str(unknown.spent), str(unknown.unconverted))
        await app.prices.set_exchange("5.40")
        [known] = await app.budgets.list()
        assert ("6.00 USD", None) == (str(known.spent), known.unconverted)


async def test_what_goes_beyond_a_budget_is_what_was_under_way(database_url):
    """The bound: the paid steps that had begun when it ran out, here as many as there are slots."""
    slots, paid, gate = 4, list[int](), asyncio.Event()
    async with Retoma(database_url) as app:

        @app.job
        async def label(ctx: Context, n: int) -> None:
            async def ask() -> None:
                if len(paid) == slots - 1:
                    gate.set()
                paid.append(n)
                await gate.wait()  # all slots are under way before the first has paid
                ctx.cost(provider="acme", usd=1)

            await ctx.step("ask", ask, pays="acme")

        await app.budgets.set("1 USD", provider="acme", per="day")
        await app.submit_many(label, range(20))
        await drain(app, slots=slots)

        assert slots == len(paid)
        [seen] = await app.budgets.list()
        assert seen.spent.nanos == slots * 10**9
        assert seen.exhausted


async def test_a_step_declared_once_is_not_begun_without_money(database_url):
    paid: list[int] = []
    async with Retoma(database_url) as app:

        @app.job
        async def order(ctx: Context, n: int) -> None:
            async def buy() -> None:
                paid.append(n)
                ctx.cost(provider="acme", usd=1)

            await ctx.step("buy", buy, once=True, pays="acme")

        await app.budgets.set("1 USD", provider="acme", per="day")
        batch = await app.submit_many(order, range(3))
        await drain(app, slots=1)
        assert {State.DONE: 1, State.WAITING: 2} == await batch.counts()

        await app.budgets.remove(provider="acme", per="day")
        await drain(app, slots=1)
        assert {State.DONE: 3} == await batch.counts()
        assert [0, 1, 2] == sorted(paid)


@pytest.mark.parametrize(
    ("amount", "whose"),
    [
        ("0 USD", {"provider": "acme", "per": "day"}),
        ("-1 USD", {"provider": "acme", "per": "day"}),
        ("NaN USD", {"provider": "acme", "per": "day"}),
        ("1e30 USD", {"provider": "acme", "per": "day"}),
        ("5 EUR", {"provider": "acme", "per": "day"}),
        ("5", {"provider": "acme", "per": "day"}),
        ("5 USD", {"provider": "acme", "per": "year"}),
        ("5 USD", {"provider": "acme"}),
        ("5 USD", {"provider": "acme", "per": "whole"}),
        ("5 USD", {"provider": "", "per": "day"}),
        ("5 USD", {"provider": "acme", "application": "quotes", "per": "day"}),
        ("5 USD", {"per": "day"}),
        ("5 USD", {"batch": 1, "per": "day"}),
        ("5 USD", {"batch": "1"}),
        ("5 USD", {"batch": True}),
    ],
)
async def test_a_budget_that_makes_no_sense_changes_nothing(tmp_path, amount, whose):
    async with Retoma(f"sqlite:///{tmp_path / 'work.db'}") as app:
        with pytest.raises(BadInput):
            await app.budgets.set(amount, **whose)

        assert [] == await app.budgets.list()


async def test_a_zero_budget_submits_nothing(database_url):
    async with Retoma(database_url) as app:
        label = a_paying_kind(app, [])

        with pytest.raises(BadInput, match="more than nothing"):
            await app.submit_many(label, range(3), budget="0 USD")

        assert {} == await app.insights.counts()
        assert [] == await app.batches.list()


async def test_a_budget_of_nobody_is_not_found(database_url):
    async with Retoma(database_url) as app:
        with pytest.raises(NotFound, match="there is no batch 7"):
            await app.budgets.set("5 USD", batch=7)
        with pytest.raises(NotFound, match="there is no budget budget:provider:acme:day"):
            await app.budgets.remove(provider="acme", per="day")

        assert [] == await app.budgets.list()


async def test_a_budget_goes_with_its_batch(database_url, test_clock):
    async with Retoma(database_url) as app:
        label = a_paying_kind(app, [])
        batch = await app.submit_many(label, [1], budget="9 USD")
        test_clock.jump(0)
        await drain(app)
        assert [] != await app.costs.of_batch(batch.id)
        test_clock.jump(timedelta(days=3).total_seconds())

        await app.retention.run_once(done=DAY)
        await app.retention.run_once(done=DAY)

        assert [] == await app.budgets.list()
        assert [] == await app.costs.of_batch(batch.id)
        [kind] = await app.costs.by_kind()
        assert Decimal(2) == kind.spent.usd, "what it came to stays in the larger accounts"
