"""A runner that is told to leave: claims nothing more, finishes or gives back, exits with 0."""

import signal
from datetime import datetime

from retoma.db import adhoc, moment
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import State

GATE = {"gate": "never"}
LEFT_AT = adhoc("SELECT at FROM audit WHERE verb = 'runner.leaving'")


async def test_sigterm_finishes_or_gives_back_and_loses_no_attempt(new_world):
    """E29 E9: short work is done, long work is given back without counting, the rest waits."""
    async with new_world() as world:
        runner = world.start_runner("leaving", slots=8, grace=8.0)
        long = await world.submit_all("hold", [GATE] * 4)
        await world.wait_held(long)
        short = await world.submit_all("hold", [{"gate": "short"}] * 4)
        await world.wait_held(short)
        waiting = await world.submit_all("chain", [{"steps": 1}] * 4)

        runner.send(signal.SIGTERM)
        await world.eventually(lambda: leaves(world), "the runner has begun to leave")
        world.open_gate("short")  # sooner, it would have room for what waits
        await world.eventually(lambda: ended(runner), "the runner has left")

        assert 0 == runner.popen.returncode
        found = await world.verdict(finished=False)
        jobs = {job.id: job for job in found.jobs}
        assert {State.DONE} == {jobs[id_].state for id_ in short}
        assert {(State.WAITING, 0, 1)} == {
            (job.state, job.failures, job.epoch) for job in map(jobs.get, long) if job
        }
        assert {(State.WAITING, 0)} == {
            (job.state, job.epoch) for job in map(jobs.get, waiting) if job
        }
        assert set(long) == {e.job for e in found.events if e.type is EventType.RELEASED}
        left = await left_at(world)
        assert left is not None
        assert all(a.claimed_at < left for a in found.attempts)
        assert ["gone"] == [seen.state for seen in await world.boots_of(runner)]

        world.start_runner("next")
        await world.wait_ended()
        await world.verdict()


STUBBORN = ["clings", "waits", "leaks"]


async def test_e29_stories_that_do_not_let_go_are_given_back_by_the_leaving_runner(new_world):
    """E29 E30: cancellation swallowed, threads left hanging: exit 0 in time, no attempt lost."""
    async with new_world() as world:
        runner = world.start_runner("leaving", slots=8, grace=0.5, let_go=0.5)
        jobs = [id_ for kind in STUBBORN for id_ in await world.submit_all(kind, [1, 2])]
        await world.wait_held(jobs)

        runner.send(signal.SIGTERM)
        await world.eventually(lambda: ended(runner), "the runner has left")

        assert 0 == runner.popen.returncode
        found = await world.verdict(finished=False)
        assert {(State.WAITING, 0, 1)} == {
            (job.state, job.failures, job.epoch) for job in found.jobs
        }
        [boot] = await world.boots_of(runner)
        assert "gone" == boot.state
        released = [e for e in found.events if e.type is EventType.RELEASED]
        assert (sorted(jobs), {boot.boot}) == (
            sorted(e.job for e in released),
            {e.actor for e in released},
        )

        world.start_runner("next")
        await world.wait_ended()
        await world.verdict()


async def left_at(world) -> datetime | None:
    database = await world.app.database()
    row = await database.read(lambda tx: tx.one(LEFT_AT))
    return moment(row[0] if row else None)


async def leaves(world) -> bool:
    return await left_at(world) is not None


async def ended(process) -> bool:
    return not process.running
