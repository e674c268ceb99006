"""A full disk (F8): nothing is claimed, nobody is told a lie, and room that comes back is enough."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from retoma.db import Full
from retoma.engine.rules.states import State
from tests.chaos import disk
from tests.chaos.disk import Disk
from tests.chaos.world import Process, World

BIG = 100_000  # characters: more than a page that is half empty can take
MANY = 3_000  # small jobs: more than the empty ends of all pages can take


@pytest.fixture
def the_disk(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Disk]:
    """Under every process that is started after it, and under this one."""
    it = Disk(database_url, tmp_path / "full")
    for name, value in it.environment.items():
        monkeypatch.setenv(name, value)
    unwatch = disk.watch()
    yield it
    unwatch()


async def test_a_full_disk_stops_claims_and_room_is_enough_to_go_on(new_world, the_disk):
    """F8 E7: with work under way on two runners; no restart, no step twice, no attempt spent."""
    async with new_world() as world:
        runners = [world.start_runner(f"runner {n}", slots=4) for n in range(2)]
        await world.booted(*runners)
        heavy = {"gate": "go", "size": BIG}
        held = await world.submit_all("heavy", [heavy] * 4 + [heavy | {"evidence": True}] * 4)
        late = [await world.submit("chain", {"n": n}, delay=60) for n in range(10)]
        await world.wait_held(held)
        boots = {each.boot for each in await world.living()}

        the_disk.fill()
        world.open_gate("go")
        holders = await told_of_no_room(world, held)
        world.clock.jump(61)  # those scheduled are due now
        await world.ring()
        await nobody_claims(world, {job.id for job in late}, holders)

        the_disk.free()
        await world.wait_ended()

        found = await world.verdict()
        assert {State.DONE} == {job.state for job in found.jobs}
        assert {1} == {job.epoch for job in found.jobs}, "every job by its first claim"
        await nobody_complains(world)
        assert boots == {each.boot for each in await world.living()}
        assert all(runner.running for runner in runners)
        for runner in runners:
            assert said(runner, "runner.no_room") == said(runner, "runner.room_again")


async def test_whoever_submits_is_told_that_there_is_no_room_and_nothing_is_changed(
    new_world, the_disk
):
    """F8 E7: one job, a batch, and small ones until the last corner is full."""
    async with new_world() as world:
        await world.submit("chain", {"n": 0})
        the_disk.fill()

        with pytest.raises(Full, match=r"no room left .* nothing was changed"):
            await world.app.submit("chain", {"text": "x" * BIG})
        with pytest.raises(Full, match="no room left"):
            await world.app.submit_many("chain", [{"text": "x" * BIG}] * 3, name="big")
        with pytest.raises(Full):
            await world.submit_all("chain", ({"n": n} for n in range(MANY)))

        assert [] == await world.app.batches.list()
        the_disk.free()
        world.start_runner()
        await world.submit("chain", {"text": "x" * BIG})
        await world.wait_ended()
        found = await world.verdict()
        assert len(found.accepted) == len(found.jobs)


async def test_a_runner_whose_beats_find_no_room_outlives_its_lease(new_world, the_disk):
    """F8 E2 E3: nothing can be written for longer than a lease; nobody is declared lost for it."""
    async with new_world() as world:
        runners = [world.start_runner(f"runner {n}", slots=4) for n in range(2)]
        await world.booted(*runners)
        held = await world.submit_all("heavy", [{"gate": "go", "size": 10}] * 4)
        for n in range(10):
            await world.submit("chain", {"n": n}, delay=30)
        await world.wait_held(held)
        boots = {each.boot for each in await world.living()}

        the_disk.fill("log")
        world.open_gate("go")
        for hop in range(2):
            world.clock.jump(40)
            await world.eventually(
                lambda hop=hop: beats_failed(runners, more_than=hop), "beats find no room"
            )
        the_disk.free()
        await world.wait_ended()

        found = await world.verdict()
        assert all(said(runner, "runner.no_room") == 1 for runner in runners)
        assert {(State.DONE, 1)} == {(job.state, job.epoch) for job in found.jobs}
        assert boots == {each.boot for each in await world.living()}


@pytest.mark.parametrize("what", ["pages", "log"])
async def test_a_full_disk_is_not_ready_until_there_is_room(new_world, the_disk, what):
    async with new_world() as world:
        await world.app.ready()

        the_disk.fill(what)
        with pytest.raises(Full, match="no room left"):
            await world.app.ready()

        the_disk.free()
        await world.app.ready()


async def test_sigterm_ends_a_runner_on_a_full_disk_within_its_grace(new_world, the_disk):
    """E29 F8: what it could not settle is taken back by others once there is room."""
    async with new_world() as world:
        runner = world.start_runner("leaving", slots=8, grace=3.0, let_go=1.0)
        await world.booted(runner)
        heavy = await world.submit_all("heavy", [{"gate": "go", "size": BIG}] * 4)
        long = await world.submit_all("hold", [{"gate": "late"}] * 2)
        await world.wait_held(heavy + long)

        the_disk.fill("log")
        world.open_gate("go")
        await world.eventually(lambda: said_once(runner, "runner.no_room"), "it finds no room")
        runner.send(signal.SIGTERM)
        await world.eventually(lambda: ended(runner), "the runner has left the full disk")

        assert 0 == runner.popen.returncode
        the_disk.free()
        world.open_gate("late")
        world.start_runner("next")
        world.clock.jump(61)
        await world.wait_ended()
        found = await world.verdict()
        assert {State.DONE} == {job.state for job in found.jobs}


async def said_once(runner: Process, event: str) -> bool:
    return said(runner, event) > 0


async def ended(runner: Process) -> bool:
    return not runner.running


async def told_of_no_room(world: World, held: list[int]) -> set[str]:
    """The runners that hold something say that they cannot write; their boots."""
    boots = {(await world.app.get(job)).runner for job in held}

    async def told() -> bool:
        return boots <= {each.boot for each in await world.living() if each.trouble}

    await world.eventually(told, f"{len(boots)} runners say that there is no room")
    assert all("no room" in str(each.trouble) for each in await world.living() if each.trouble)
    return {str(boot) for boot in boots}


async def nobody_claims(world: World, jobs: set[int], holders: set[str]) -> None:
    """For some ticks, none of those who said so."""
    for _ in range(5):
        await asyncio.sleep(0.5)
        states = await world.states()
        claimed = [job for job in jobs if states[job] is not State.WAITING]
        assert not holders & {str((await world.app.get(job)).runner) for job in claimed}


async def nobody_complains(world: World) -> None:
    async def content() -> bool:
        return not any(each.trouble for each in await world.living())

    await world.eventually(content, "nobody says any more that there is no room")


async def beats_failed(runners: list[Process], *, more_than: int) -> bool:
    return all(said(runner, "runner.beat_failed") > more_than for runner in runners)


def said(runner: Process, event: str) -> int:
    return runner.log.read_text().count(event)
