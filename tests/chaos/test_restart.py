"""PostgreSQL crashes in the middle of a run: what was answered for is still there."""

import asyncio
import contextlib

import pytest

from retoma import Unsure
from retoma.db import DatabaseError
from retoma.engine.rules.states import State
from tests.chaos.world import World
from tests.clock import TestClock


@pytest.fixture
def durable_world(durable_postgres, tmp_path, seed) -> World:
    """A world on a server of its own, which forces every commit to disk."""
    folder = tmp_path / "world"
    folder.mkdir()
    url = durable_postgres.database_dsn("postgres")
    return World(url, folder, TestClock(tmp_path / "clock", url), seed)


@pytest.mark.parametrize(
    ("jobs", "crashes"),
    [(60, 2), pytest.param(400, 10, marks=[pytest.mark.soak, pytest.mark.timeout(600)])],
)
async def test_a_crash_of_postgresql_loses_nothing_that_was_answered_for(
    durable_world, durable_postgres, jobs, crashes
):
    """E24 E7 E5: -m immediate while jobs are submitted and run; the checker is green."""
    async with durable_world as world:
        runners = [world.start_runner(f"runner {n}", slots=10) for n in range(2)]
        await world.booted(*runners)
        submitting = asyncio.create_task(submit_throughout(world, jobs))

        open_at_crash = []
        for _ in range(crashes):
            await asyncio.sleep(world.rng.uniform(0.2, 0.7))
            await world.eventually(
                lambda: open_or_over(world, submitting), "a crash meets an open job"
            )
            open_at_crash.append(await world.count_open())
            durable_postgres.stop("immediate")
            await asyncio.sleep(0.2)
            durable_postgres.start()
        unsure = await submitting
        await world.wait_ended()

        found = await world.verdict()
        assert {State.DONE} == {job.state for job in found.jobs}
        assert len(found.accepted) <= len(found.jobs) <= len(found.accepted) + unsure
        assert jobs <= len(found.accepted) + unsure
        assert any(open_at_crash), "no crash met an open job"
        assert all(runner.running for runner in runners)


async def open_or_over(world: World, submitting: "asyncio.Task[int]") -> bool:
    return submitting.done() or await world.count_open() > 0


async def submit_throughout(world: World, jobs: int) -> int:
    """One after another, half of them with keys; how many answers never came."""
    unsure = 0
    for n in range(jobs):
        try:
            await world.submit(
                "chain", {"steps": 4, "ms": 30, "n": n}, key=f"{n}" if n % 2 else None
            )
        except Unsure:
            unsure += 1
        with contextlib.suppress(DatabaseError):
            await world.app.insights.counts()
        await asyncio.sleep(world.rng.uniform(0.0, 0.03))
    return unsure
