"""A job that kills its runner is buried alone; those who sat beside it are not."""

import asyncio

from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import DeadReason, State
from tests.chaos.world import World

SLOTS = 100


async def test_a_poison_job_among_a_hundred_slots_buries_nobody_else(new_world):
    """E10: three runners die of it; ninety-nine neighbours are lost with it twice, and end well."""
    async with new_world() as world:
        neighbours = await world.submit_all("neighbour", [{"slow": 2}] * (SLOTS // 2))
        poison = await world.submit("poison", {"beside": SLOTS - 1})
        neighbours += await world.submit_all("neighbour", [{"slow": 2}] * (SLOTS // 2 - 1))

        deaths = await keep_running(world, slots=SLOTS)

        found = await world.verdict()
        ends = {job.id: (job.state, job.reason) for job in found.jobs}
        assert (State.DEAD, DeadReason.POISON) == ends.pop(poison.id)
        assert dict.fromkeys(neighbours, (State.DONE, None)) == ends
        assert 3 == deaths
        losses = [e.job for e in found.events if e.type is EventType.LOST]
        assert all(losses.count(job) == 2 for job in neighbours), "not all sat beside it"
        assert "poison" in await world.app.explain(poison.id)


async def keep_running(world: World, *, slots: int) -> int:
    """Start a runner, and another whenever it dies, until nothing is left; how many died."""
    deaths = 0
    runner = world.start_runner("runner", slots=slots)
    while await world.count_open():
        if not runner.running:
            deaths += 1
            runner = world.start_runner("runner", slots=slots)
        assert deaths <= 5, "it goes on killing"
        await asyncio.sleep(0.05)
    return deaths
