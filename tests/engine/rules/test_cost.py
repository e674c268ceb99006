"""What a call cost is counted once: with its step, or with the attempt that it came to nothing in."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from retoma import BadInput, Context, Permanent, Retoma, Retry, Snooze, State, Transient
from retoma.db import Database
from retoma.db.crashpoint import Harm
from retoma.engine import store
from retoma.engine.rules.cost import charge
from retoma.engine.store.cost import CostSeen
from retoma.engine.testing import crash_at, drain
from tests.engine.aids import AT_ONCE, change, rows

USD = Decimal


async def test_what_a_step_costs_is_counted_for_its_job_batch_kind_and_provider(database_url):
    async with Retoma(database_url) as app:

        @app.job(application="quotes")
        async def label(ctx: Context, n: int) -> int:
            async def ask() -> int:
                ctx.cost(provider="acme", model="m1", tokens=100, usd="0.0125")
                return n

            return await ctx.step("ask", ask)

        batch = await app.submit_many(label, [1, 2, 3])
        await drain(app)

        first = (await app.jobs(limit=1))[0]
        for seen, times in (
            (await app.costs.of_job(first.id), 1),
            (await app.costs.of_batch(batch.id), 3),
            (await app.costs.by_kind("label"), 3),
            (await app.costs.by_application("quotes"), 3),
            (await app.costs.by_provider("acme"), 3),
            (await app.costs.total(), 3),
        ):
            [cost] = seen
            assert (times * USD("0.0125"), {"tokens": times * 100}) == (
                cost.spent.usd,
                cost.spent.units,
            )
            assert ("acme", "m1", USD(0)) == (cost.provider, cost.model, cost.saved.usd)
        [step] = await app.steps(first.id)
        assert [
            {"provider": "acme", "model": "m1", "tokens": 100, "usd": "0.0125"}
        ] == step.cost["charges"]


async def test_what_was_paid_is_counted_although_the_step_failed(database_url):
    async with Retoma(database_url) as app:
        calls = []

        @app.job(retry=AT_ONCE)
        async def label(ctx: Context) -> None:
            async def ask() -> None:
                calls.append(1)
                ctx.cost(provider="acme", usd=1)
                if len(calls) < 3:
                    raise Transient("the answer was cut off")

            await ctx.step("ask", ask)

        job = await app.submit(label)
        await drain(app)

        [cost] = await app.costs.of_job(job.id)
        assert 3 == len(calls) == cost.spent.usd
        assert 0 == cost.saved.usd, "nothing that was kept was read back"


async def test_what_a_buried_job_and_a_caught_failure_cost_is_counted(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def label(ctx: Context) -> None:
            async def fail() -> None:
                ctx.cost(usd="0.10")
                raise Permanent("no such page", code="NOT_FOUND")

            async def ask() -> None:
                ctx.cost(usd="0.01")

            for each in ("one", "two"):
                try:
                    await ctx.step(each, fail)
                except Permanent:
                    await ctx.step(f"instead of {each}", ask)
            await ctx.step("three", fail)

        job = await app.submit(label)
        await drain(app)

        assert State.DEAD is (await app.get(job.id)).state
        [cost] = await app.costs.of_job(job.id)
        assert USD("0.32") == cost.spent.usd
        for step in await app.steps(job.id):
            assert [{"usd": "0.01"}] == step.cost["charges"], "each step has only its own"


async def test_a_resumed_step_is_not_charged_again_and_what_it_saved_is_counted(database_url):
    async with Retoma(database_url) as app:
        fails = [2]

        @app.job(retry=AT_ONCE)
        async def label(ctx: Context) -> None:
            async def ask() -> None:
                ctx.cost(provider="acme", tokens=10, usd=2)

            await ctx.step("ask", ask)
            if fails[0]:
                fails[0] -= 1
                raise Transient("later")

        job = await app.submit(label)
        await drain(app)
        await app.retry(job.id)
        await drain(app)

        [cost] = await app.costs.of_job(job.id)
        assert (USD(2), 10) == (cost.spent.usd, cost.spent.units["tokens"])
        assert (USD(6), 30) == (cost.saved.usd, cost.saved.units["tokens"]), (
            "two failures, one again"
        )


async def test_a_story_that_leaves_by_itself_saves_nothing_by_coming_back(database_url):
    async with Retoma(database_url) as app:
        looks = [3]

        @app.job
        async def label(ctx: Context) -> Any:
            async def ask() -> None:
                ctx.cost(usd=2)

            await ctx.step("ask", ask)
            looks[0] -= 1
            return Snooze(timedelta(0)) if looks[0] else None

        job = await app.submit(label)
        await drain(app)

        [cost] = await app.costs.of_job(job.id)
        assert (USD(2), USD(0)) == (cost.spent.usd, cost.saved.usd)


async def test_a_child_and_a_durable_loop_pay_by_what_their_values_say(database_url):
    def bill(answer: int) -> Mapping[str, Any]:
        return {"provider": "acme", "usd": answer, "calls": 1}

    async with Retoma(database_url) as app:

        @app.job
        async def label(ctx: Context) -> None:
            await ctx.step("child", squared, 2, cost=bill)
            await ctx.each("loop", [1, 3], squared, cost=bill)

        job = await app.submit(label)
        await drain(app)

        [cost] = await app.costs.of_job(job.id)
        assert (USD(4 + 1 + 9), {"calls": 3}) == (cost.spent.usd, cost.spent.units)


def squared(n: int) -> int:
    return n * n


@pytest.mark.parametrize("wrong", [{"provider": "acme"}, {"usd": "much"}, None])
async def test_a_cost_that_cannot_be_told_keeps_what_was_paid_for(
    database_url: str, wrong: Mapping[str, Any] | None
) -> None:
    """What `cost` raises, or says wrongly, is no reason to pay again: the charge has no price."""
    asked = []

    def bill(answer: int) -> Mapping[str, Any]:
        if wrong is None:
            raise ZeroDivisionError
        return wrong

    async def ask() -> int:
        asked.append(1)
        return 7

    async with Retoma(database_url) as app:

        @app.job(retry=Retry(attempts=3, base=0.0))
        async def label(ctx: Context) -> int:
            return int(await ctx.step("ask", ask, cost=bill, pays="acme"))

        job = await app.submit(label)
        await drain(app)

        assert "7" == (await app.get(job.id)).result
        assert [1] == asked
        [cost] = await app.costs.of_job(job.id)
        assert (USD(0), {"calls": 1}, 1) == (
            cost.spent.usd,
            cost.spent.units,
            cost.spent.unpriced,
        )


async def test_parallel_steps_pay_each_for_itself(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def label(ctx: Context) -> None:
            async def ask(n: int) -> None:
                ctx.cost(usd=n)
                await asyncio.sleep(0)
                ctx.cost(usd=10 * n)

            await ctx.each("ask", range(1, 6), ask)

        job = await app.submit(label)
        await drain(app)

        told = {step.key: step.cost["charges"] for step in await app.steps(job.id)}
        assert {
            str(n - 1): [{"usd": f"{n}.00"}, {"usd": f"{10 * n}.00"}] for n in range(1, 6)
        } == told


async def test_an_answer_that_cannot_be_kept_was_paid_all_the_same(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def label(ctx: Context) -> None:
            async def ask() -> Any:
                ctx.cost(usd=3)
                return object()

            await ctx.step("ask", ask)

        job = await app.submit(label)
        await drain(app)

        assert "unstorable_result" == (await app.get(job.id)).code
        [cost] = await app.costs.of_job(job.id)
        assert 3 == cost.spent.usd


@pytest.mark.parametrize("point", ["save.after_commit", "settle.after_commit"])
async def test_a_commit_whose_answer_was_lost_is_counted_once(database_url, point):
    async with Retoma(database_url) as app:
        failed: list[int] = []

        @app.job(retry=AT_ONCE)
        async def label(ctx: Context) -> None:
            async def ask() -> None:
                ctx.cost(usd=1)

            await ctx.step("one", ask)
            ctx.cost(usd="0.10")
            if not failed:
                failed.append(1)
                raise Transient("later")

        job = await app.submit(label)
        with crash_at(point, Harm.REPLY_LOST):
            await drain(app)

        assert State.DONE is (await app.get(job.id)).state
        [cost] = await app.costs.of_job(job.id)
        assert (USD("1.20"), USD(1)) == (cost.spent.usd, cost.saved.usd)


async def test_totals_are_exact_before_and_after_they_are_added_up(database_url):
    async with Retoma(database_url, timezone="America/Sao_Paulo") as app:

        @app.job
        async def label(ctx: Context, usd: str) -> None:
            ctx.cost(provider="acme", usd=usd)

        await app.submit_many(label, ["0.1"] * 30)
        await drain(app)
        database = await app.database()

        async def asked() -> list[list[CostSeen]]:
            return [await app.costs.total(), await app.costs.by_kind()]

        for _ in range(3):
            for [cost] in await asked():
                assert 3 == cost.spent.usd
            await database.write(
                lambda tx: store.cost.fold_charges(tx, "America/Sao_Paulo"), verb="fold"
            )
        [[unfolded]] = await rows(database, "SELECT count(*) FROM charges")
        assert 0 == unfolded


async def test_an_account_that_is_full_stops_nobody(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def label(ctx: Context) -> None:
            ctx.cost(usd=100_000)

        await app.submit(label)
        await drain(app)
        database = await app.database()

        def fold(tx: Any) -> Any:
            return store.cost.fold_charges(tx, "UTC")

        await database.write(fold, verb="fold")
        await change(database, "UPDATE costs SET amount = 8999999999999999999")
        await app.submit(label)
        await drain(app)
        await database.write(fold, verb="fold")

        [cost] = await app.costs.total()
        assert 9_000_000_000 == cost.spent.usd


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"tokens": -1},
        {"tokens": 1.5},
        {"tokens": True},
        {"tokens": 10**15},
        {"usd": -1},
        {"usd": float("nan")},
        {"brl": 10**9},
        {"eur": 5},
        {"Tokens": 5},
        {"unpriced": 5},
        {"usd": 1, "provider": ""},
        {"usd": 1, "provider": "a\0b"},
        {"usd": 1, "model": "m" * 101},
        {"usd": 1, "provider": 7},
    ],
)
def test_a_cost_that_makes_no_sense_is_refused(told):
    money = {name: told.pop(name, None) for name in ("provider", "model", "usd", "brl")}

    with pytest.raises(BadInput):
        charge(**money, units=told)


async def test_a_cost_that_is_refused_ends_the_job_and_counts_nothing(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def label(ctx: Context) -> None:
            async def ask() -> None:
                ctx.cost(eur=5)

            await ctx.step("ask", ask)

        job = await app.submit(label)
        await drain(app)

        assert State.DEAD is (await app.get(job.id)).state
        assert "is no currency here" in await app.explain(job.id)
        assert [] == await app.costs.of_job(job.id)


async def test_a_job_that_costs_nothing_asks_nothing_more(database_url):
    """The hot path does not pay for what it does not use."""
    async with Retoma(database_url) as app:

        @app.job
        async def plain(ctx: Context) -> int:
            return await ctx.step("one", squared_soon, 2)

        @app.job
        async def paying(ctx: Context) -> int:
            ctx.cost(usd=1)
            return await ctx.step("one", squared_soon, 2, pays="acme", reuse="two")

        asked = Asked(await app.database())
        app.connection.use(asked)
        sent = {}
        for kind in (plain, paying):
            await app.submit(kind)
            asked.names.clear()
            await drain(app)
            sent[kind] = {name for name in asked.names if name in MONEY}

        # The counters are added up in the background, whoever runs.
        assert set() == sent[plain] - {"take_charges"}
        assert MONEY == sent[paying]


MONEY = frozenset(
    ("add_charges", "find_budgets", "find_reuse", "offer_reuse", "take_charges", "add_costs")
)


async def squared_soon(n: int) -> int:
    return n * n


class Asked:
    """A database that remembers what it was asked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.names: list[str] = []

    async def write(self, fn: Any, **how: Any) -> Any:
        return await self._database.write(lambda tx: fn(Told(tx, self.names)), **how)

    async def read(self, fn: Any, **how: Any) -> Any:
        return await self._database.read(lambda tx: fn(Told(tx, self.names)), **how)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


class Told:
    """A transaction of it."""

    def __init__(self, tx: Any, names: list[str]) -> None:
        self._tx = tx
        self._names = names

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._tx, name)
        if name in ("run", "one", "all"):

            def told(statement: Any, **params: Any) -> Any:
                self._names.append(statement.name)
                return asked(statement, **params)

            return told
        if name in ("together", "finish"):

            def sent(*calls: Any) -> Any:
                listed = list(calls[0] if name == "together" else calls)
                self._names.extend(call.statement.name for call in listed)
                return asked(listed) if name == "together" else asked(*listed)

            return sent
        return asked
