"""Each tick once, however many runners there are and however they die."""

from datetime import datetime, timedelta

import pytest

from retoma.db import adhoc, moment
from retoma.engine import store
from retoma.engine.rules.cron import Cron
from tests.chaos.world import Process, World

MINUTES = 4
CRON = Cron("* * * * *", "UTC")
HOLDER = adhoc(
    "SELECT r.pid FROM duties d JOIN runners r ON r.boot = d.boot"
    " WHERE d.name = 'schedule' AND r.state = 'alive'"
)
TICKS = adhoc("SELECT t.at, t.job FROM ticks t ORDER BY t.at")


async def test_three_runners_and_a_holder_killed_before_every_tick_make_each_tick_once(
    new_world, soak
):
    async with new_world() as world:
        first = await schedule_minutely(world)
        runners = [world.start_runner(f"runner {n}") for n in range(3)]
        await world.booted(*runners)

        for minute in range(10 * MINUTES if soak else MINUTES):
            runners = await killed(world, runners, f"runner {3 + minute}")
            await world.travel(60, alive=runners)
        await world.eventually(lambda: up_to_date(world, first), "every tick is there")

        await check(world, first)


@pytest.mark.parametrize("point", ["before_commit", "after_commit"])
async def test_a_holder_that_dies_at_the_commit_of_a_tick_neither_loses_nor_repeats_it(
    new_world, monkeypatch, point
):
    async with new_world() as world:
        first = await schedule_minutely(world)
        monkeypatch.setenv("RETOMA_CRASHPOINT", f"schedule.{point}=kill")
        victim = world.start_runner("victim")
        await world.booted(victim)
        await world.eventually(lambda: holds(world, victim), "the victim has the duty")
        monkeypatch.delenv("RETOMA_CRASHPOINT")
        others = [world.start_runner(f"other {n}") for n in range(2)]
        await world.booted(*others)

        await world.travel(60, alive=others)
        await world.eventually(lambda: gone(victim), "the victim has died of its tick")
        await world.eventually(lambda: up_to_date(world, first), "every tick is there")

        await check(world, first)


async def schedule_minutely(world: World) -> datetime:
    """When it ticks first: nearly a minute from now, so that nothing ticks before it is meant to."""
    database = await world.app.database()
    world.clock.jump(61 - (await database.read(store.now)).second)
    payload = {"steps": 1, "ms": 1}
    world.app.schedule("minutely", "chain", cron=CRON.line, payload=payload, timezone="UTC")
    [found] = await world.app.schedules.list()
    return found.next_at


async def killed(world: World, runners: list[Process], name: str) -> list[Process]:
    """The one that has the duty is dead, another has come; the others know nothing of it yet."""
    await world.eventually(lambda: any_holds(world), "somebody has the duty")
    [pid] = await holder(world)
    victim = next((each for each in runners if each.pid == pid), world.rng.choice(runners))
    victim.kill()
    newcomer = world.start_runner(name)
    await world.booted(newcomer)
    return [each for each in runners if each is not victim] + [newcomer]


async def holder(world: World) -> list[int]:
    database = await world.app.database()
    return [pid for (pid,) in await database.read(lambda tx: tx.all(HOLDER))]


async def any_holds(world: World) -> bool:
    return bool(await holder(world))


async def holds(world: World, process: Process) -> bool:
    return await holder(world) == [process.pid]


async def gone(process: Process) -> bool:
    return not process.running


async def ticks(world: World) -> list[tuple[datetime, int]]:
    database = await world.app.database()
    found = await database.read(lambda tx: tx.all(TICKS))
    return [(moment(at), job) for at, job in found if at is not None]


async def up_to_date(world: World, first: datetime) -> bool:
    expected = CRON.between(first - timedelta(seconds=1), await world.now())
    return len(await ticks(world)) >= len(expected)


async def check(world: World, first: datetime) -> None:
    """As many jobs as ticks, as many ticks as minutes, and nothing in their history impossible."""
    await world.wait_ended()
    found = await ticks(world)
    minutes = [first + timedelta(minutes=n) for n in range(len(found))]
    history = await world.verdict()

    assert minutes == [at for at, _ in found]
    assert sorted(job for _, job in found) == sorted(job.id for job in history.jobs)
    assert len(found) >= 1
