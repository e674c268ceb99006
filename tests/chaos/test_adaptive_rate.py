"""Two runners find the limit of a service over real HTTP, by its own log; one of them is killed meanwhile."""

import json
from typing import Any

import pytest

from retoma.engine.rules.states import State
from tests.chaos.limited_jobs import LIMITED_PORT, RATE
from tests.chaos.world import World
from tests.lines import whole_lines

FOR_EVER = 1e9
# Seconds after the first call, calls a second; how many jobs; the share that may be refused, and must be used.
PLAYS: list[Any] = [
    pytest.param([(FOR_EVER, 5)], 60, 0.25, 0.0, id="short"),
    pytest.param(
        [(100, 20), (200, 5), (FOR_EVER, 40)],
        7_000,
        0.05,
        0.85,
        id="five minutes",
        marks=[pytest.mark.soak, pytest.mark.timeout(900)],
    ),
]
PLAYED = 300.0  # seconds that are judged
PORTION = 0.25  # of the jobs: then a runner is killed


@pytest.mark.parametrize(("limits", "jobs", "refused", "used"), PLAYS)
async def test_two_runners_keep_to_a_limit_that_nobody_told_them(
    new_world, limits, jobs, refused, used
):
    async with new_world() as world:
        await open_service(world, limits)
        runners = [world.start_runner(f"runner {n}", slots=40) for n in range(2)]
        await world.booted(*runners)
        await world.app.submit_many("ask_limited", [None] * jobs)

        async def a_portion_is_done() -> bool:
            return bool(len(read_log(world)) >= PORTION * jobs)

        await world.eventually(a_portion_is_done, "a part of the calls was made")
        world.kill(runners[0])
        await world.booted(world.start_runner("runner 2", slots=40))
        await world.wait_ended()

        assert {State.DONE} == set((await world.states()).values())
        calls = [each for each in read_log(world) if each["at"] < PLAYED]
        took = sum(each["took"] for each in calls)
        ends = min(PLAYED, calls[-1]["at"])
        begins = [0.0, *(until for until, _ in limits)]
        true = sum(
            max(min(until, ends) - begin, 0.0) * limit
            for begin, (until, limit) in zip(begins, limits, strict=False)
        )
        print(f"{took / true:.1%} of the limit used, {1 - took / len(calls):.1%} refused")
        assert len(calls) - took <= refused * len(calls)
        assert used * true <= took
        [seen] = [each for each in await world.app.rates.list() if each.key == RATE]
        assert (True, None) == (seen.adaptive, seen.bound)


def read_log(world: World) -> list[dict[str, Any]]:
    return [json.loads(line) for line in whole_lines(world.folder / "limited.log")]


async def open_service(world: World, limits: list[tuple[float, float]]) -> None:
    told = {
        "log": str(world.folder / "limited.log"),
        "port_file": str(world.folder / LIMITED_PORT),
        "limits": limits,
    }
    world.start("service", "tests.chaos.limiting_service", told)

    async def listens() -> bool:
        return (world.folder / LIMITED_PORT).exists()

    await world.eventually(listens, "the service listens")
