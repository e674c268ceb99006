"""What a dead or silent runner held runs again: soon, by one other, once."""

import asyncio
from collections import Counter
from datetime import datetime

from retoma import db
from retoma.db import Database
from retoma.engine import store
from retoma.engine.ops.watchdog import Watchdog
from retoma.engine.ports import Process as Host
from retoma.engine.rules.events import EventType
from retoma.engine.store import Boot, Spot
from tests.chaos.history import History
from tests.chaos.world import World

GATE = {"gate": "never"}
NO_TICK = 600.0  # seconds: whatever happens before, no tick has brought it about


async def test_a_killed_neighbour_s_jobs_run_again_before_its_lease_is_over(new_world):
    """E18 E19: on one host a dead process needs neither a lease nor a tick to be missed."""
    async with new_world() as world:
        victim = world.start_runner("victim")
        jobs = await world.submit_all("hold", [GATE] * 20)
        await world.wait_held(jobs)
        survivor = world.start_runner("survivor", tick=NO_TICK)
        await world.booted(survivor)

        victim.kill()
        [dead] = await world.boots_of(victim)
        await world.wait_held(jobs, epoch=2)

        again = claimed_at(await world.history(finished=False), epoch=2)
        assert max(again.values()) < dead.lease_until
        await world.wait_ended()
        await world.verdict()


async def test_a_restarted_single_runner_takes_its_jobs_up_at_once(new_world):
    """E18: the embedded case, one process that was killed and started again."""
    async with new_world() as world:
        first = world.start_runner("only")
        jobs = await world.submit_all("hold", [GATE] * 20)
        await world.wait_held(jobs)

        first.kill()
        [dead] = await world.boots_of(first)
        world.start_runner("only", tick=NO_TICK)
        await world.wait_ended()

        found = await world.verdict()
        assert max(claimed_at(found, epoch=2).values()) < dead.lease_until
        assert {2} == {job.epoch for job in found.jobs}


async def test_a_silent_runner_is_missed_after_its_lease_and_taken_over_once(new_world):
    """E18 E19: stopped, not provably gone; three others look at the same time."""
    async with new_world() as world:
        silent = world.start_runner("silent")
        jobs = await world.submit_all("hold", [GATE] * 30)
        await world.wait_held(jobs)
        await world.freeze(silent)
        others = [world.start_runner(f"other {n}") for n in range(3)]
        await world.booted(*others)
        before = await world.history(finished=False)

        await world.travel(61, alive=others)
        await world.ring()
        await world.wait_ended()

        found = await world.verdict()
        assert not claimed_at(before, epoch=2)
        assert dict.fromkeys(jobs, 2) == Counter(
            e.job for e in found.events if e.type is EventType.CLAIMED
        )


async def test_many_recoveries_at_once_take_each_job_back_once(new_world):
    """E19: k watchdogs over the same lost runner, each on its own connections."""
    async with new_world() as world:
        jobs = await world.submit_all("chain", [{}] * 200)
        lost = boot_of("lost")
        await hold_all(world, lost)
        recoveries = [await recovery(world, f"watchdog {n}") for n in range(6)]
        await lose(world, lost)

        swept = await asyncio.gather(*(watchdog.run_once() for watchdog, _ in recoveries))

        for _, own in recoveries:
            own.close()
        found = await world.verdict(finished=False)
        back = Counter(e.job for e in found.events if e.type is EventType.LOST)
        assert dict.fromkeys(jobs, 1) == back
        assert len(jobs) == sum(each.taken_back for each in swept)


def claimed_at(found: History, *, epoch: int) -> dict[int, datetime]:
    return {
        event.job: event.at
        for event in found.events
        if event.type is EventType.CLAIMED and event.epoch == epoch
    }


def boot_of(name: str) -> Boot:
    return Boot(
        id=name, name=name, process=Host.this(), version="", slots=500, knows=["chain@1"]
    )


async def recovery(world: World, name: str) -> tuple[Watchdog, Database]:
    """A watchdog with connections of its own."""
    own, me = db.open(world.url), boot_of(name)
    await own.write(lambda tx: store.boot_runner(tx, me, 60.0), verb="boot")
    return Watchdog(own, me.id, me.process, 60.0), own


async def lose(world: World, boot: Boot) -> None:
    database = await world.app.database()
    await database.write(
        lambda tx: store.move_runner(tx, boot.id, "lost", actor="test"), verb="lose"
    )


async def hold_all(world: World, me: Boot) -> None:
    database = await world.app.database()
    await database.write(lambda tx: store.boot_runner(tx, me, 60.0), verb="boot")
    await database.write(
        lambda tx: store.claim_jobs(
            tx, me.id, [Spot("chain")], me.knows, slots=500, suspects=1, promote=True
        ),
        verb="claim",
    )
