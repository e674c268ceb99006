"""E14: a runner's host may be an hour wrong, or jump by one: no result of E2, E3, E7, E15 changes.

PostgreSQL tells the time for all; each runner has a host of its own. A SQLite file has one host, whose
clock is the database's too: there everybody jumps at once.
"""

import asyncio
import time
from pathlib import Path

import pytest

from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from tests.chaos.test_kill import held_by
from tests.chaos.wall import VARIABLE, Wall, hang, real_time_ns
from tests.chaos.world import Process, World

HOUR = 3600.0
JOBS = 60
PAYLOADS = [
    # Long enough that a test process which is short of CPU time still sees the victim at work.
    {"steps": 3, "ms": 200, "each": n % 3, "fails": int(n % 4 == 0)}
    for n in range(JOBS)
]


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_e14_runners_on_hosts_an_hour_apart_and_one_that_jumps(new_world, tmp_path):
    async with new_world() as world:
        walls = [Wall(tmp_path / f"wall {n}") for n in range(3)]
        for wall, wrong in zip(walls, (HOUR, -HOUR, 0), strict=True):
            wall.set(wrong)
        runners = [start(world, wall, f"runner {n}") for n, wall in enumerate(walls)]
        await world.booted(*runners)
        jumping = asyncio.create_task(jump(walls[2]))
        await world.submit_all("chain", PAYLOADS)

        await kill_one_that_holds(world, runners[0])
        runners[0] = start(world, walls[0], "runner 0 again")
        await world.wait_ended()

        jumping.cancel()
        for wall in walls:
            wall.set(-2 * HOUR)  # whoever looked at the wall would not beat for hours
        await world.booted(*runners)
        await world.travel(61, alive=runners)

        await judged(world)
        states = [seen.state for seen in await world.app.runners.list()]
        assert 1 == states.count("lost"), f"a living runner was taken for dead: {states}"


async def test_e14_a_host_that_jumps_an_hour_ahead(new_world, tmp_path, monkeypatch):
    async with new_world() as world:
        wall = Wall(tmp_path / "wall")
        for name in ("time", "time_ns", "clock_gettime", "clock_gettime_ns"):
            monkeypatch.setattr(time, name, getattr(time, name))  # put back afterwards
        if world.url.startswith("sqlite:"):
            hang(wall.path)
        runners = [start(world, wall, f"runner {n}") for n in range(3)]
        await world.booted(*runners)
        await world.submit_all("chain", PAYLOADS)

        await kill_one_that_holds(world, runners[0])
        wall.set(HOUR)
        runners[0] = start(world, wall, "runner 0 again")
        await world.wait_ended()

        await judged(world)


async def judged(world: World) -> None:
    """Nothing impossible has happened, and everything that was accepted is done."""
    found = await world.verdict()
    assert {State.DONE} == {job.state for job in found.jobs}
    assert JOBS == len(found.jobs)
    assert any(event.type is EventType.FAILED for event in found.events)
    assert any(event.type is EventType.LOST for event in found.events)


def start(world: World, wall: Wall, name: str) -> Process:
    told = {"name": name, "tick": 1.0, "slots": 4}
    return world.start(name, "tests.chaos.run_skewed", told, wall.environment)


async def kill_one_that_holds(world: World, victim: Process) -> None:
    async def holds() -> bool:
        return bool(await held_by(world, victim))

    await world.eventually(holds, "the victim is at work")
    victim.kill()


async def jump(wall: Wall) -> None:
    """An hour ahead, an hour back, and right again, several times a second."""
    while True:
        for wrong in (HOUR, -HOUR, 0.0):
            wall.set(wrong)
            await asyncio.sleep(0.1)


def test_the_wall_moves_the_time_of_day_and_nothing_else(tmp_path: Path, monkeypatch):
    for name in ("time", "time_ns", "clock_gettime", "clock_gettime_ns"):
        monkeypatch.setattr(time, name, getattr(time, name))
    wall = Wall(tmp_path / "wall")
    since_start = time.monotonic()
    hang(wall.path)

    wall.set(HOUR)

    now = real_time_ns() / 1e9
    realtime = time.clock_gettime(time.CLOCK_REALTIME)
    for told in (time.time(), time.time_ns() / 1e9, realtime):  # noqa: TID251 — the very thing
        assert HOUR - 5 < told - now < HOUR + 5
    assert time.clock_gettime(time.CLOCK_MONOTONIC) - since_start < HOUR / 2
    assert VARIABLE in wall.environment
