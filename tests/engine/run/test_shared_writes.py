"""Stories that write at the same moment share a transaction, and nothing else: not their fence, not their errors."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from retoma import Context, Permanent, Retoma, State
from retoma.engine.run.transaction import Transaction
from retoma.testing import crash_at, drain
from tests.engine.aids import AT_ONCE, change, eventually, running

TABLE = "CREATE TABLE goods (name text PRIMARY KEY, n integer NOT NULL)"
PUT = "INSERT INTO goods (name, n) VALUES (:name, 1) ON CONFLICT (name) DO NOTHING"
PUT_ONCE = "INSERT INTO goods (name, n) VALUES (:name, 1)"
NAMES = ["bell", "chair", "lamp", "rope", "vase"]


class Shop:
    """Stories that all come to the counter before any is served."""

    def __init__(self, app: Retoma, wait_for: int = len(NAMES)) -> None:
        self.app = app
        self.served: list[list[str]] = []  # by calls
        self.open = asyncio.Event()
        self._came: set[int] = set()
        self._wait_for = wait_for

        @app.job(retry=AT_ONCE)
        async def buy(ctx: Context, name: str) -> str:
            self.come(ctx.job)
            await asyncio.shield(self.open.wait())
            return await ctx.share(self.put, name)

        self.buy = buy

    def come(self, job: int) -> None:
        self._came.add(job)
        if len(self._came) == self._wait_for:
            self.open.set()

    async def all_here(self) -> bool:
        return len(self._came) == len(NAMES)

    def put(self, tx: Transaction, names: Sequence[str]) -> list[str]:
        self.served.append([*names])
        for name in names:
            tx.run(PUT, name=name)
        return [f"a {name}" for name in names]

    async def begin(self) -> dict[str, int]:
        """The jobs, by what they buy."""
        await self.app.write(lambda tx: tx.run(TABLE))
        return {name: (await self.app.submit(self.buy, name)).id for name in NAMES}

    async def goods(self) -> list[str]:
        rows = await self.app.write(lambda tx: tx.all("SELECT name FROM goods ORDER BY name"))
        return [name for (name,) in rows]

    async def ends(self, jobs: dict[str, int]) -> dict[str, State]:
        return {name: (await self.app.get(job)).state for name, job in jobs.items()}

    async def all_ended(self) -> bool:
        return all([(await self.app.get(job)).ended for job in self._came])


async def test_who_writes_at_the_same_moment_shares_one_call_and_gets_his_own_answer(
    database_url,
):
    async with Retoma(database_url) as app:
        shop = Shop(app)
        jobs = await shop.begin()

        await drain(app)

        assert [NAMES] == [sorted(names) for names in shop.served]
        assert await shop.goods() == NAMES
        for name, job in jobs.items():
            done = await app.get(job)
            assert (State.DONE, f'"a {name}"') == (done.state, done.result)
            assert await app.steps(job) == [], "it is no step"


async def test_who_comes_alone_waits_for_nobody(database_url):
    async with Retoma(database_url) as app:
        shop = Shop(app, wait_for=1)
        jobs = await shop.begin()

        await drain(app, slots=1)

        assert [1] * len(NAMES) == [len(names) for names in shop.served]
        assert {State.DONE} == {*(await shop.ends(jobs)).values()}


async def test_e3_who_no_longer_holds_his_job_is_left_out_and_his_neighbours_are_served(
    database_url,
):
    async with Retoma(database_url) as app:
        shop = Shop(app, wait_for=len(NAMES) + 1)  # till the test says so
        jobs = await shop.begin()
        async with running(app):
            await eventually(shop.all_here)
            await change(
                await app.database(),
                f"UPDATE jobs SET epoch = epoch + 1, state = 'parked', runner = NULL WHERE id = {jobs['lamp']}",  # noqa: S608
            )
            shop.open.set()
            refused = await eventually(app.runners.refused_writes)
            others = {name: job for name, job in jobs.items() if name != "lamp"}

            async def served() -> bool:
                return {State.DONE} == {*(await shop.ends(others)).values()}

            await eventually(served)
        assert refused == 1
        assert await shop.goods() == [*others]
        assert (await app.get(jobs["lamp"])).state is State.PARKED


async def test_e13_who_is_to_be_canceled_is_left_out_and_his_neighbours_are_served(
    database_url,
):
    async with Retoma(database_url) as app:
        shop = Shop(app, wait_for=len(NAMES) + 1)
        jobs = await shop.begin()
        async with running(app):
            await eventually(shop.all_here)
            await app.cancel(jobs["rope"])
            shop.open.set()
            await eventually(shop.all_ended)
        ends = await shop.ends(jobs)
        assert State.CANCELED == ends.pop("rope")
        assert {State.DONE} == {*ends.values()}
        assert await shop.goods() == [*ends]


class Refusing(Shop):
    """Has no vase, and says so in one way or another."""

    def __init__(self, app: Retoma, how: str) -> None:
        super().__init__(app)
        self.how = how

    def put(self, tx: Transaction, names: Sequence[str]) -> list[str]:
        answers = super().put(tx, names)
        if "vase" in names and self.how == "raises":
            raise Permanent("no vase", code="none")
        if "vase" in names and self.how == "exits":
            raise SystemExit(1)
        if "vase" in names and self.how == "breaks a rule":
            tx.run(PUT_ONCE, name="vase")
        if "vase" in names and self.how == "forgets one":
            answers.pop()
        return answers


@pytest.mark.parametrize("how", ["raises", "exits", "breaks a rule", "forgets one"])
async def test_an_error_is_told_to_whose_it_is_and_undoes_nobody_else(database_url, how):
    async with Retoma(database_url) as app:
        shop = Refusing(app, how)
        jobs = await shop.begin()

        await drain(app)

        ends = await shop.ends(jobs)
        assert State.DEAD == ends.pop("vase")
        assert {State.DONE} == {*ends.values()}
        assert await shop.goods() == [*ends]
        assert ["vase"] in shop.served


@pytest.mark.parametrize(
    ("point", "harm"),
    [
        ("share.before_commit", "exception"),
        ("share.after_commit", "exception"),
        ("share.after_commit", "reply_lost"),
    ],
)
async def test_e5_whatever_happens_around_the_commit_everybody_is_served_once(
    database_url, point, harm
):
    async with Retoma(database_url) as app:
        shop = Shop(app)
        jobs = await shop.begin()

        with crash_at(point, harm):
            await drain(app)

        assert {State.DONE} == {*(await shop.ends(jobs)).values()}
        assert await shop.goods() == NAMES
        assert {0} == {(await app.get(job)).failures for job in jobs.values()}


async def test_a_function_of_its_own_has_a_transaction_of_its_own(database_url):
    """What one function raises does not reach the stories of another."""
    async with Retoma(database_url) as app:
        shop = Shop(app, wait_for=len(NAMES) + 1)
        jobs = await shop.begin()

        def refuse(tx: Transaction, names: Sequence[str]) -> list[str]:
            raise Permanent("closed", code="closed")

        @app.job
        async def ask(ctx: Context, name: str) -> Any:
            shop.come(ctx.job)
            await shop.open.wait()
            return await ctx.share(refuse, name)

        asked = await app.submit(ask, "bell")
        await drain(app)
        assert {State.DONE} == {*(await shop.ends(jobs)).values()}
        assert [NAMES] == [sorted(names) for names in shop.served]
        assert (await app.get(asked.id)).code == "closed"


async def test_an_async_function_is_refused(database_url):
    async with Retoma(database_url) as app:

        async def put_async(tx: Transaction, names: Sequence[str]) -> list[str]:
            return [*names]

        @app.job
        async def work(ctx: Context, name: str) -> Any:
            return await ctx.share(put_async, name)  # type: ignore[arg-type]

        job = await app.submit(work, "")
        await drain(app)
        assert "plain function" in str([e.details for e in await app.events(job.id)])
