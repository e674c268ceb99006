"""Money, moments and bytes come back as what they were: the first time, after a crash, in a child."""

import asyncio
import os
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from retoma import Context, Edge, Happened, Remote, Retoma, State, Status, Transient
from retoma.codec import Unstorable
from retoma.engine.testing import drain
from tests.engine.aids import AT_ONCE
from tests.engine.calls import Bill, add_tax, due_next

BILL = Bill(Decimal("12.50"), datetime(2026, 3, 1, 9, 30, tzinfo=UTC), b"\x00\xff")
TAXED = Bill(Decimal("13.7500"), datetime(2026, 3, 1, 9, 30, tzinfo=UTC), b"\x00\xff")


async def price_of(bill: Bill) -> Decimal:
    return bill.price


async def mail(bill: Bill) -> UUID:
    return UUID(int=len(bill.scan))


async def send(key: str, payload: Bill) -> str:
    return f"{payload.price}"


async def ask(handle: str) -> Status:
    return Status("done", Decimal(handle))


async def found(bill: Bill) -> Happened:
    return Happened(bill.price)


SHOP = Remote(send=send, ask=ask, statuses={"done": Edge.DONE}, interval=0.001, returns=Decimal)


async def all_ways(ctx: Context, bill: Bill) -> list[Any]:
    return [
        await ctx.step("async", price_of, bill),
        await ctx.step("child", add_tax, bill, Decimal("0.10")),
        await ctx.step("many", due_next, date(2026, 3, 1), date(2026, 4, 1)),
        await ctx.step("once", price_of, bill, once=True, reconcile=found, reuse=None),
        await ctx.step("reuse", price_of, bill, reuse=[bill.price, bill.at]),
        await ctx.step("class", Decimal, "1.50"),
        *(await ctx.each("each", [bill], mail)),
        await ctx.remote("remote", SHOP, bill),
        await ctx.write("write", lambda _: None),
        await ctx.write("typed", moment_of),
    ]


def moment_of(_: object) -> datetime:
    return BILL.at


EXPECTED = [
    Decimal("12.50"),
    TAXED,
    date(2026, 4, 1),
    Decimal("12.50"),
    Decimal("12.50"),
    Decimal("1.50"),
    UUID(int=2),
    Decimal("12.50"),
    None,
    BILL.at,
]


async def test_every_way_returns_the_same_the_first_time_and_after_a_crash(database_url):
    async with Retoma(database_url) as app:
        seen: list[list[Any]] = []

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context, bill: Bill) -> Bill:
            assert bill == BILL
            seen.append(await all_ways(ctx, bill))
            if ctx.attempt == 1:
                raise Transient("once more")
            return TAXED

        job = await app.submit(story, BILL)
        await drain(app)

        assert State.DONE is (await app.get(job.id)).state
        assert [EXPECTED] * 2 == seen
        assert [repr(EXPECTED)] * 2 == [repr(each) for each in seen]
        assert TAXED == await app.result(job.id)


async def test_what_no_annotation_brings_back_is_refused_at_the_door(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def untyped(ctx: Context, payload) -> None: ...

        for payload in (Decimal("1.5"), {"at": BILL.at}, [b"x"]):
            with pytest.raises(Unstorable, match="annotate the result, the parameter"):
                await app.submit(untyped, payload)
            with pytest.raises(Unstorable, match="annotate the result, the parameter"):
                await app.submit_many(untyped, [payload])
        assert [] == await app.jobs()


async def test_a_step_whose_result_no_annotation_brings_back_is_paid_once_and_says_what_to_do(
    database_url,
):
    async with Retoma(database_url) as app:
        calls: list[int] = []

        async def buy():
            calls.append(1)
            return Decimal("1.5")

        @app.job(retry=AT_ONCE)
        async def story(ctx: Context) -> None:
            await ctx.step("buy", buy)

        job = await app.submit(story)
        await drain(app)

        found = await app.get(job.id)
        assert (State.PARKED, "unstorable") == (found.state, found.reason)
        assert [1] == calls
        assert "as Decimal" in (await app.events(job.id))[-1].details["why"]


async def test_a_result_is_read_only_of_a_job_that_is_done(database_url):
    async with Retoma(database_url) as app:

        @app.job
        async def story(ctx: Context) -> Decimal:
            return Decimal("1.50")

        job = await app.submit(story)
        with pytest.raises(Exception, match="is waiting and has no result"):
            await app.result(job.id)
        await drain(app)

        assert Decimal("1.50") == await app.result(job.id)


# --- what children load

SCRIPT = """
import asyncio, os
from retoma import Retoma
from retoma.engine.rules.retry import Retry
{where}
with open("started", "a") as started:
    started.write("x")
app = Retoma(os.environ["DATABASE"])
app.job(double)

async def main():
    async with app:
        job = await app.submit(double, 21)
        try:
            await app.run(until_idle=True)
        finally:
            print(len(await app.jobs()), (await app.get(job.id)).result)

asyncio.run(main())
"""
DOUBLE = "def double(n: int) -> int:\n    return 2 * n\n"


async def run_script(folder: Path, database: str, where: str) -> tuple[str, str, str]:
    (folder / "maths.py").write_text(DOUBLE)
    (folder / "script.py").write_text(SCRIPT.format(where=where))
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, "DATABASE": database},
        capture_output=True,
        text=True,
        timeout=100,
    )
    return ended.stdout, ended.stderr, (folder / "started").read_text()


async def test_a_child_does_not_run_the_script_of_its_parent(database_url, tmp_path):
    """A script without `if __name__ == "__main__"` would submit its jobs again in each child."""
    printed, _, started = await run_script(tmp_path, database_url, "from maths import double")

    assert ("1 42\n", "x") == (printed, started)


async def test_a_sync_job_that_is_only_in_the_script_is_refused_before_it_is_claimed(
    database_url, tmp_path
):
    printed, error, started = await run_script(tmp_path, database_url, DOUBLE)

    assert ("1 None\n", "x") == (printed, started)
    assert "'double' is sync and stands in the script that was started" in error
    assert "move it into a module and import it" in error
