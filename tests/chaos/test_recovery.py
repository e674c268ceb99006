"""What a dead or silent runner held runs again: soon, by one other, once."""

import asyncio
from collections import Counter
from datetime import datetime

from retoma import db
from retoma.db import Database, adhoc, moment
from retoma.engine import store
from retoma.engine.events import EventType
from retoma.engine.ports import Process as Host
from retoma.engine.store import Boot, Spot
from retoma.engine.watchdog import Watchdog
from tests.chaos.history import History
from tests.chaos.world import World

GATE = {"gate": "never"}
SAME_HOST = 2.0  # seconds, DESIGN §6
SINCE = adhoc("SELECT since FROM runners WHERE pid = :pid")


async def test_a_killed_neighbour_s_jobs_run_again_within_two_seconds(new_world):
    """E18 E19: on one host a dead process needs no lease to be missed. Nobody is told to hurry."""
    async with new_world() as world:
        victim = world.start_runner("victim", tick=5.0)
        jobs = await world.submit_all("hold", [GATE] * 20)
        await world.wait_held(jobs)
        survivor = world.start_runner("survivor", tick=5.0)
        await world.booted(survivor)

        killed = await world.now()
        victim.kill()
        await world.wait_held(jobs, epoch=2)

        again = claimed_at(await world.history(finished=False), epoch=2)
        late = max(at - killed for at in again.values()).total_seconds()
        assert late <= SAME_HOST, f"the last of them ran again after {late:.1f} s"
        await world.wait_ended()
        await world.verdict()


async def test_a_restarted_single_runner_takes_its_jobs_up_at_once(new_world):
    """E18: the embedded case, one process that was killed and started again."""
    async with new_world() as world:
        first = world.start_runner("only", tick=5.0)
        jobs = await world.submit_all("hold", [GATE] * 20)
        await world.wait_held(jobs)

        first.kill()
        second = world.start_runner("only", tick=5.0)
        await world.wait_ended()

        found = await world.verdict()
        database = await world.app.database()
        row = await database.read(lambda tx: tx.one(SINCE, pid=second.pid))
        booted = moment(row[0] if row else None)
        assert booted is not None
        late = max(claimed_at(found, epoch=2).values()) - booted
        assert late.total_seconds() <= 1.0
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
        late = max(claimed_at(found, epoch=2).values()) - min(
            e.at for e in found.events if e.type is EventType.LOST
        )
        assert late.total_seconds() <= 5.0


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
