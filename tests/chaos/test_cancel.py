"""A cancel that was answered is kept: canceled, or done and too late, never tried again."""

import asyncio

import pytest

from retoma import IllegalMove
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State
from tests.chaos.world import World

GATE = {"gate": "never"}
KINDS = ("chain", "hopeless")  # one that works, one that would be tried again and again
LANES = 4

# How a job may end after each answer to its cancel; None: it had ended already.
MEANS = {
    State.CANCELED: {State.CANCELED},
    State.RUNNING: {State.CANCELED, State.DONE},
    None: {State.DONE, State.DEAD},
}


async def test_a_running_job_ends_canceled_at_its_next_step_boundary(new_world):
    """E13: answered at once, ended soon, and no step is started after it."""
    async with new_world() as world:
        world.start_runner("runner", tick=600.0)
        job = await world.submit("hold", GATE)
        await world.wait_held([job.id])

        answer = await world.app.cancel(job.id)
        await world.wait_ended()

        assert State.RUNNING is answer
        found = await world.verdict()
        assert [State.CANCELED] == [job.state for job in found.jobs]
        assert ["held"] == [e.step for e in world.effects() if e.phase == "start"]
        with pytest.raises(IllegalMove):
            await world.app.resume(job.id)


async def test_cancels_that_race_with_the_end_never_lead_to_a_retry(new_world):
    """E13: whatever wins, the answer was true: canceled, or done and too late."""
    async with new_world() as world:
        runner = world.start_runner("runner")
        await world.booted(runner)

        answers: dict[int, State | None] = {}
        lanes = (submit_and_cancel(world, kind, answers) for kind in KINDS * LANES)
        await asyncio.gather(*lanes)
        await world.wait_ended()

        found = await world.verdict()
        for job in found.jobs:
            assert job.state in MEANS[answers[job.id]]
        assert State.RUNNING in answers.values(), "no cancel met a running job"
        assert State.CANCELED in {job.state for job in found.jobs}


async def submit_and_cancel(world: World, kind: str, answers: dict[int, State | None]) -> None:
    """One job after another, each canceled a little later; None where it had ended before."""
    for _ in range(10):
        job = await world.submit(kind, {"steps": 3, "ms": 30})
        await asyncio.sleep(world.rng.uniform(0.0, 0.2))
        try:
            answers[job.id] = await world.app.cancel(job.id)
        except IllegalMove:
            answers[job.id] = None


async def test_a_job_whose_runner_is_killed_after_the_cancel_is_not_tried_again(new_world):
    """E13: taking back knows of the cancel."""
    async with new_world() as world:
        victim = world.start_runner("victim")
        job = await world.submit("hold", GATE)
        await world.wait_held([job.id])
        await world.freeze(victim)  # it hears nothing of the cancel

        answer = await world.app.cancel(job.id)
        victim.kill()
        world.start_runner("survivor")
        await world.wait_ended()

        assert State.RUNNING is answer
        found = await world.verdict()
        assert [(State.CANCELED, 1)] == [(job.state, job.epoch) for job in found.jobs]
        assert 1 == sum(e.type is EventType.CLAIMED for e in found.events)
