"""Several processes that submit, and that open a new database, at the same time."""

import signal

from retoma.engine.checker import effect_ledger
from retoma.engine.rules.states import State
from tests.chaos.world import Process, World

PROCESSES = 3


async def test_the_same_keys_from_many_processes_are_one_job_each(new_world):
    """E8 E7: three times 50 submits at once over ten keys; a key has one job and one payload."""
    async with new_world() as world:
        submitters = [
            world.start_submitter(
                *[f"submitter {n}"],
                gate="go",
                do="keys",
                keys=10,
                submits=50,
                seed=world.seed + n,
            )
            for n in range(PROCESSES)
        ]

        await go(world, submitters)

        found = await world.verdict(finished=False)
        refused = list(effect_ledger.lines(world.folder, "refused-*"))
        assert [0] * PROCESSES == [each.popen.returncode for each in submitters]
        assert 10 == len(found.jobs)
        assert 50 * PROCESSES == len(found.accepted) + len(refused)
        kept = {told.key: told.payload for told in found.accepted}
        assert all(kept[line["key"]] != line["payload"] for line in refused)
        assert refused, "no payload differed"


async def test_an_acknowledged_submit_survives_the_kill_of_its_submitter(new_world):
    """E24 E7: what was answered for is there, whatever became of the process."""
    async with new_world() as world:
        submitters = [
            world.start_submitter(f"submitter {n}", gate="go", do="die", submits=10 + n)
            for n in range(3)
        ]

        await go(world, submitters)
        world.start_runner("runner")
        await world.wait_ended()

        found = await world.verdict()
        assert [-signal.SIGKILL] * 3 == [each.popen.returncode for each in submitters]
        assert {told.job for told in found.accepted} == {job.id for job in found.jobs}
        assert [State.DONE] * 33 == [job.state for job in found.jobs]


async def test_processes_that_start_at_once_migrate_once(new_world):
    """Each finds the schema ready, none is refused, whoever was first."""
    world = new_world()
    try:
        submitters = [
            world.start_submitter(f"process {n}", gate="go", do="migrate", files=40)
            for n in range(4)
        ]

        await go(world, submitters)

        status = await world.app.upgrade()
        told = list(effect_ledger.lines(world.folder, "migrated-*"))
        assert [0] * 4 == [each.popen.returncode for each in submitters], world.last_words()
        assert [list(status.applied)] * 4 == [line["applied"] for line in told]
        assert status.known == status.applied
    finally:
        await world.__aexit__(None, None, None)


async def go(world: World, submitters: list[Process]) -> None:
    """Let them start together; return when all have ended."""

    async def ready() -> bool:
        return len(submitters) == len(list(world.folder.glob("ready-*")))

    async def ended() -> bool:
        return not any(each.running for each in submitters)

    await world.eventually(ready, "the submitters are ready")
    world.open_gate("go")
    await world.eventually(ended, "the submitters have ended")
