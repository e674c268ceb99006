"""Runners killed with -9 while they work: every job ends, and its committed steps ran once."""

import asyncio
import signal
import time

import pytest

from retoma.db import adhoc
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from tests.chaos.history import History
from tests.chaos.world import Process, World

SUSPECTS = adhoc("SELECT DISTINCT r.pid FROM jobs j JOIN runners r ON r.boot = j.runner"
                 " WHERE j.lost >= 2")  # fmt: skip
SLOTS = 4  # of each runner
HELD = adhoc(
    "SELECT count(*) FROM jobs j JOIN runners r ON r.boot = j.runner WHERE r.pid = :pid"
)


@pytest.mark.parametrize(
    ("jobs", "kills"),
    [(150, 9), pytest.param(1_000, 60, marks=[pytest.mark.soak, pytest.mark.timeout(600)])],
)
async def test_three_runners_killed_throughout_end_every_job(new_world, jobs, kills):
    """E1 E2 E3 E4 E5 E7 E9 E11 E15 E18 E19: kill -9 at random moments, the checker is green."""
    async with new_world() as world:
        payloads = [
            {"steps": 4, "ms": 25, "each": n % 4, "fails": int(n % 7 == 0)} for n in range(jobs)
        ]
        submitted = jobs
        batch = await world.app.submit_many("chain", payloads[: jobs // 2], name="half")
        await world.submit_all("chain", payloads[jobs // 2 :])
        runners = [world.start_runner(f"runner {n}", slots=SLOTS) for n in range(3)]
        await world.booted(*runners)

        hits = await kill_throughout(world, runners, kills)
        while len(hits) < kills:  # the runners were quicker than we: as many jobs as that takes
            submitted += len(await world.submit_all("chain", payloads[: jobs // 2]))
            hits += await kill_throughout(world, runners, kills - len(hits))
        await world.wait_ended()

        found = await world.verdict()
        assert {State.DONE} == {job.state for job in found.jobs}
        assert submitted == len(found.jobs)
        assert {State.DONE: jobs // 2} == await batch.counts()
        assert lost(found) >= len(hits)
        assert len({e.actor for e in found.events if e.type is EventType.CLAIMED}) > 3


async def kill_throughout(
    world: World,
    runners: list[Process],
    kills: int,
    died: dict[int, int] | None = None,
    slots: int = SLOTS,
) -> list[int]:
    """Kill one of them, again and again, and start another in its place; how many jobs each held.

    `died` is told the pids and since when they did nothing more.
    """
    hits: list[int] = []
    while len(hits) < kills and await world.count_open():
        await asyncio.sleep(world.rng.uniform(0.02, 0.3))
        place = world.rng.randrange(len(runners))
        victim = runners[place]
        # Stopped first: nothing changes between the look and the kill.
        victim.send(signal.SIGSTOP)
        held = await held_by(world, victim)
        if not held or await holds_suspect(world, victim):
            victim.send(signal.SIGCONT)
            continue
        if died is not None:
            died[victim.pid] = time.monotonic_ns()  # it has stopped: it did nothing after this
        world.kill(victim)
        hits.append(held)
        runners[place] = world.start_runner(f"runner {place}", slots=slots)
    return hits


async def held_by(world: World, process: Process) -> int:
    await asyncio.sleep(0.02)  # what it has sent already is still being committed
    database = await world.app.database()
    row = await database.read(lambda tx: tx.one(HELD, pid=process.pid))
    assert row is not None
    return int(row[0])


async def holds_suspect(world: World, process: Process) -> bool:
    """A third loss without progress is poison by definition: nobody could tell the two apart."""
    database = await world.app.database()
    return (process.pid,) in await database.read(lambda tx: tx.all(SUSPECTS))


def lost(found: History) -> int:
    return sum(event.type is EventType.LOST for event in found.events)
