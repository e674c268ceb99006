"""Strangers hold the database, stories hold the loop, everybody comes at once: all wait, none is lost."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import psycopg
import pytest

from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from tests.chaos.history import History
from tests.chaos.world import Process, World

SLOTS = 10


async def test_a_stranger_who_holds_the_database_for_seconds_only_makes_everybody_wait(
    new_world,
):
    """F9 E7 E18: jobs at work, jobs to be claimed, a job to be submitted; nothing fails."""
    async with new_world() as world:
        runners = [world.start_runner(f"runner {n}", slots=5) for n in range(2)]
        await world.booted(*runners)
        await world.submit_all("chain", [{"steps": 4, "ms": 20}] * 40)

        with held_by_a_stranger(world.url):
            late = asyncio.create_task(world.submit("chain", {"n": "late"}))
            await asyncio.sleep(3)
            assert not late.done()
        await late
        await world.wait_ended()

        found = await world.verdict()
        assert {State.DONE} == {job.state for job in found.jobs}
        assert {1} == {job.epoch for job in found.jobs}
        assert all(runner.running for runner in runners)


@contextmanager
def held_by_a_stranger(url: str) -> Iterator[None]:
    """Nobody else writes a job meanwhile."""
    if url.startswith("sqlite:"):
        file = apsw.Connection(str(Path(url.removeprefix("sqlite:///"))))
        file.set_busy_timeout(300_000)
        file.execute("BEGIN EXCLUSIVE")
        yield
        file.execute("ROLLBACK")
        file.close()
    else:
        with psycopg.connect(url) as server:
            server.execute("LOCK TABLE retoma.jobs IN ACCESS EXCLUSIVE MODE")
            yield
            server.rollback()


async def test_a_story_that_holds_the_loop_does_not_lose_the_lease(new_world):
    """F10 E3: the beat has a thread of its own; longer than a lease, and nobody takes the jobs."""
    async with new_world() as world:
        runner = world.start_runner("blocked", slots=5)
        await world.booted(runner)
        held = await world.submit_all("hold", [{"gate": "go"}] * 3)
        await world.wait_held(held)
        blocking = await world.submit("block", {"gate": "go"})
        await world.wait_held([blocking.id])
        other = world.start_runner("other", slots=5)
        await world.booted(other)

        await world.travel(150, alive=[runner, other])
        world.open_gate("go")
        await world.wait_ended()

        found = await world.verdict()
        assert {(State.DONE, 1)} == {(job.state, job.epoch) for job in found.jobs}


@pytest.mark.parametrize(
    "jobs",
    [600, pytest.param(10_000, marks=[pytest.mark.soak, pytest.mark.timeout(600)])],
)
async def test_four_runners_that_come_back_together_share_what_waits(new_world, jobs):
    """F15 E1 E16 E18 E28: all are killed at once, and all start again at once."""
    async with new_world() as world:
        await world.app.submit_many(
            "chain", [{"steps": 1, "ms": 5}] * jobs, name="the whole herd"
        )
        first = start_four(world)
        await world.booted(*first)
        await world.eventually(lambda: some_ended(world), "some jobs have ended")
        for runner in first:
            runner.kill()

        second = start_four(world)
        every_slot = await world.submit_all("hold", [{"gate": "go"}] * 4 * SLOTS)
        await world.wait_held(every_slot)
        world.open_gate("go")
        await world.wait_ended()

        found = await world.verdict()
        assert {State.DONE: jobs + len(every_slot)} == dict(
            Counter(job.state for job in found.jobs)
        )
        assert [SLOTS] * 4 == sorted(claims_by_boot(found, every_slot).values())
        assert all(runner.running for runner in second)


def start_four(world: World) -> list[Process]:
    return [world.start_runner(f"runner {n}", slots=SLOTS) for n in range(4)]


async def some_ended(world: World) -> bool:
    return (await world.app.insights.counts()).get(State.DONE, 0) > 0


def claims_by_boot(found: History, ids: list[int]) -> Counter[str | None]:
    of_these = set(ids)
    return Counter(
        e.actor for e in found.events if e.type is EventType.CLAIMED and e.job in of_these
    )
