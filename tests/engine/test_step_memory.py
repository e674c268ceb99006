"""What a job saved is read back when it is asked for, within a budget of bytes (E3)."""

import asyncio
import subprocess
import sys
import textwrap
from contextlib import suppress
from typing import Any

import pytest

from retoma import Context, Retoma, State, Transient
from retoma.engine.run.byte_budget import ByteBudget
from retoma.engine.testing import drain
from tests.engine import aids

LARGE = 300_000  # characters: more than comes along with a claim

WAKING = """
    import asyncio, re, sys
    from pathlib import Path
    from retoma import Context, Retoma, Snooze, State

    url, phase, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    app, saved = Retoma(url), []

    async def fetch(name: str) -> str:
        return name * 2_500_000

    @app.job
    async def work(ctx: Context, steps: int) -> int:
        size = 0
        for n in range(steps):
            size += len(await ctx.step(f"fetch {n}", fetch, "ab"))
        if phase == "wake":
            return size
        saved.append(ctx.job)
        if len(saved) == jobs:
            app.stop()
        return Snooze(3600)

    async def main():
        async with app:
            if phase == "save":
                await app.submit_many(work, [1] * (jobs - 1) + [4])
                await app.run(slots=2)
                return
            await app.run(slots=100, until_idle=True)
            counts = await app.insights.counts()
            print(counts[State.DONE])
        status = Path("/proc/self/status").read_text()
        print(int(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1]) // 1024)

    asyncio.run(main())
"""


@pytest.mark.parametrize(
    "jobs", [60, pytest.param(100, marks=[pytest.mark.soak, pytest.mark.timeout(600)])]
)
async def test_many_jobs_with_large_steps_wake_in_little_memory(
    database_url, tmp_path, test_clock, jobs
):
    program = tmp_path / "waking.py"
    program.write_text(textwrap.dedent(WAKING))

    async def run(phase: str) -> list[int]:
        child = await asyncio.create_subprocess_exec(
            sys.executable, program, database_url, phase, str(jobs), stdout=subprocess.PIPE
        )
        told, _ = await child.communicate()
        assert 0 == child.returncode
        return [int(line) for line in told.split()]

    await run("save")
    test_clock.jump(3601)
    done, megabytes = await run("wake")

    print(f"{jobs} jobs with {jobs + 3} steps of 5 MB woke in {megabytes} MB")
    assert jobs == done
    assert megabytes <= 300


async def test_a_large_value_is_read_back_whole_and_its_function_not_run_again(database_url):
    app, made, got = Retoma(database_url), [], []

    async def fetch(size: int) -> str:
        made.append(size)
        return "é" * size

    @app.job(retry=aids.AT_ONCE)
    async def work(ctx: Context, sizes: list[int]) -> None:
        got.append([await ctx.step("fetch", fetch, n, key=str(n)) for n in sizes])
        if ctx.attempt == 1:
            raise Transient("once more")

    async with app:
        sizes = [LARGE, 1, LARGE + 1, 2, LARGE + 2]
        job = await app.submit(work, sizes)
        await drain(app)
        assert State.DONE is (await app.get(job.id)).state

    assert sizes == made
    assert [["é" * size for size in sizes]] * 2 == got


async def test_many_small_values_are_read_back_in_few_statements(database_url):
    app, reads = Retoma(database_url), list[Any]()

    async def number(n: int) -> str:
        return f"{n:0300}"

    @app.job(retry=aids.AT_ONCE)
    async def work(ctx: Context) -> int:
        numbers = await ctx.each("number", range(1_500), number)
        if ctx.attempt == 1:
            raise Transient("once more")
        return sum(map(int, numbers))

    async with app:
        job = await app.submit(work)
        database: Any = await app.database()
        counting: Any = Counting(database, reads)
        app.connection.use(counting)
        await drain(app)
        assert str(sum(range(1_500))) == (await app.get(job.id)).result

    assert len(reads) < 40


class Counting:
    """A database that counts its reads."""

    def __init__(self, inner: Any, reads: list[Any]) -> None:
        self._inner = inner
        self._reads = reads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def read(self, fn: Any, **how: Any) -> Any:
        self._reads.append(fn)
        return await self._inner.read(fn, **how)


async def test_a_loop_that_raised_reads_its_items_back_in_the_same_attempt(database_url):
    app, made = Retoma(database_url), []

    async def double(n: int) -> int:
        made.append(n)
        if made == [1, 2, 3]:
            raise ValueError("three, once")
        return 2 * n

    @app.job
    async def work(ctx: Context) -> list[int]:
        with suppress(ValueError):
            await ctx.each("double", [1, 2, 3], double, concurrency=1)
        return await ctx.each("double", [1, 2, 3], double, concurrency=1)

    async with app:
        job = await app.submit(work)
        await drain(app)
        assert "[2,4,6]" == (await app.get(job.id)).result
    assert [1, 2, 3, 3] == made


# — the budget —


async def test_a_budget_is_shared_in_turn():
    budget, order = ByteBudget(10), []
    done = asyncio.Event()

    async def hold(name: str, size: int) -> None:
        async with budget.hold(size):
            order.append(name)
            await done.wait()

    tasks = [asyncio.create_task(hold(*each)) for each in [("a", 6), ("b", 5), ("c", 1)]]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert ["a"] == order

    done.set()
    await asyncio.gather(*tasks)
    assert ["a", "b", "c"] == order


async def test_what_is_larger_than_the_budget_is_held_alone():
    budget = ByteBudget(10)
    async with budget.hold(1_000):
        waiting = asyncio.create_task(anext(aiter_of(budget)))
        await asyncio.sleep(0.01)
        assert not waiting.done()
    assert await waiting


async def aiter_of(budget: ByteBudget) -> Any:
    async with budget.hold(1):
        yield True


async def test_who_is_canceled_while_waiting_holds_nothing():
    budget = ByteBudget(10)
    async with budget.hold(10):
        waiting = asyncio.create_task(anext(aiter_of(budget)))
        await asyncio.sleep(0.01)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with asyncio.timeout(5), budget.hold(10):
        pass
