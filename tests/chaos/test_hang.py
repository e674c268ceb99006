"""Jobs that crash, hang, eat or hold the loop cost themselves; who sits beside them goes on."""

import pytest

from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State

CODES = {"crashes": "child_died", "eats": "out_of_memory", "hangs": "timeout"}


async def test_e30_a_segfault_a_hanging_and_a_hungry_child_cost_only_themselves(new_world):
    """E9 E30: each fails its own attempts; the runner lives, its neighbours do not notice."""
    async with new_world() as world:
        bad = {kind: (await world.submit(kind, 1)).id for kind in CODES}
        fine = await world.submit_all("fine", range(12))
        runner = world.start_runner("runner", slots=8)

        await world.wait_ended()

        found = await world.verdict()
        jobs = {job.id: job for job in found.jobs}
        ends = {e.job: e.details for e in found.events if e.type is EventType.BURIED}
        assert CODES == {kind: ends[id_]["code"] for kind, id_ in bad.items()}
        assert {2} == {jobs[id_].failures for id_ in bad.values()}
        assert "SIGSEGV" == ends[bad["crashes"]]["signal"]
        assert "in hang" in ends[bad["hangs"]]["stack"]
        assert {(State.DONE, 0, 1)} == {
            (jobs[id_].state, jobs[id_].failures, jobs[id_].epoch) for id_ in fine
        }
        assert ["alive"] == [boot.state for boot in await world.boots_of(runner)]


@pytest.mark.parametrize("kind", ["holds", "bombs"])
async def test_e30_a_held_loop_writes_its_stacks_and_leaves(new_world, kind):
    """E10 E30: others take over, and find in each timeline where the loop was held."""
    async with new_world() as world:
        runner = world.start_runner("held", slots=4, loop_limit=3.0)
        beside = await world.submit_all("waits", [1, 2])
        await world.wait_held(beside)
        job = await world.submit(kind, 1)
        await world.eventually(lambda: ended(runner), "the held runner has left")

        world.start_runner("next", slots=4)
        await world.wait_ended()

        assert 1 == runner.popen.returncode
        found = await world.verdict()
        timeline = [e for e in found.events if e.job == job.id]
        assert ["submitted", "claimed", "stalled", "lost", "claimed", "done"] == [
            e.type for e in sorted(timeline, key=lambda e: e.seq)
        ]
        told = {e.job: e.details for e in found.events if e.type is EventType.STALLED}
        assert {*beside, job.id} == set(told)
        assert f"in {kind}" in told[job.id]["stack"]
        assert {(State.DONE, 0)} == {(each.state, each.failures) for each in found.jobs}


async def ended(process) -> bool:
    return not process.running
