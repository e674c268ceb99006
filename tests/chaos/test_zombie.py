"""A runner that was stopped and wakes after its lease: nothing it writes counts any more."""

import asyncio
import signal

from retoma.db import adhoc
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from retoma.engine.run.attempt_services import PAUSE
from tests.chaos.world import Process, World

LATE = ("late_save", "late_report", "late_settle", "late_evidence", "late_start")
REFUSABLE = ("late_save", "late_report", "late_settle", "late_evidence")
GATE = {"gate": "dawn"}

REFUSED = adhoc(
    "SELECT kind, sum(n) FROM tallies WHERE to_state = 'refused' GROUP BY kind"
    " UNION ALL SELECT kind, sum(n) FROM counts WHERE state = 'refused' AND batch = -1 GROUP BY kind"
)


async def test_a_runner_that_wakes_after_its_lease_finds_every_write_refused(new_world):
    """E2 E3 E5: step, progress, settle, evidence, then its beat: refused, and counted.

    It may offer what it had begun; it begins nothing new. Then it lives on under another boot.
    """
    async with new_world() as world:
        zombie = world.start_runner("zombie", mute_until="beats again")
        jobs = [(await world.submit(kind, GATE)).id for kind in LATE]
        await world.wait_held(jobs)
        [dead] = await world.boots_of(zombie)
        await world.freeze(zombie)
        await another_takes_over(world)

        world.open_gate("dawn")
        zombie.send(signal.SIGCONT)
        await world.eventually(lambda: refused_are(world, set(REFUSABLE)), "all were refused")
        await world.eventually(lambda: tried(world, "start"), "it tried to start a step")
        await asyncio.sleep(2 * PAUSE)  # it looks at its lease more than once
        world.open_gate("beats again")
        await world.eventually(lambda: reborn(world, zombie), "the zombie has a new boot")

        await world.verdict()
        assert {State.DONE} == set((await world.states()).values())
        told = {(e.step, e.phase) for e in world.effects() if e.epoch == 1}
        assert {("save", "refused"), ("report", "refused"), ("evidence", "refused")} <= told
        assert ("settle", "tried") in told
        assert ("late", "start") not in told
        assert await world.app.runners.refused_writes() >= len(REFUSABLE)
        boots = {seen.boot: seen for seen in await world.boots_of(zombie)}
        assert "lost" == boots[dead.boot].state
        assert dead.lease_until == boots[dead.boot].lease_until


async def test_a_beat_after_the_lease_is_refused_and_a_new_boot_begins(new_world):
    """E2 E3: nobody wrote late; the refused beat alone ends the boot and stops its work."""
    async with new_world() as world:
        zombie = world.start_runner("zombie")
        job = await world.submit("hold", GATE)
        await world.wait_held([job.id])
        [dead] = await world.boots_of(zombie)
        await world.freeze(zombie)
        await another_takes_over(world)

        zombie.send(signal.SIGCONT)
        await world.eventually(lambda: reborn(world, zombie), "the zombie has a new boot")

        boots = {seen.boot: seen for seen in await world.boots_of(zombie)}
        assert "lost" == boots[dead.boot].state
        found = await world.verdict()
        assert [1] == [e.epoch for e in found.events if e.type is EventType.LOST]


async def another_takes_over(world: World) -> Process:
    """Time goes on without the stopped one; somebody else finishes what it held."""
    survivor = world.start_runner("survivor")
    await world.booted(survivor)
    await world.travel(61, alive=[survivor])
    await world.ring()
    await world.wait_ended()
    return survivor


async def refused_are(world: World, kinds: set[str]) -> bool:
    database = await world.app.database()
    return kinds <= {kind for kind, _ in await database.read(lambda tx: tx.all(REFUSED))}


async def tried(world: World, step: str) -> bool:
    return any(e.step == step and e.phase == "tried" and e.epoch == 1 for e in world.effects())


async def reborn(world: World, process: Process) -> bool:
    await world.ring()
    return any(seen.state == "alive" for seen in await world.boots_of(process))
