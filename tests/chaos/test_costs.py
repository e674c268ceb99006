"""Costs by the other side's own log: no call is counted twice, none that was committed is forgotten."""

import asyncio
import json
import signal
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from retoma.engine.rules.states import State
from tests.chaos.paid_jobs import PAID_PORT, PROVIDER
from tests.chaos.paid_service import DEAREST
from tests.chaos.test_kill import held_by, holds_suspect
from tests.chaos.world import Process, World
from tests.lines import whole_lines

SLOTS = 4
FEW = 12  # open jobs: with fewer there might be nothing to kill a runner over
KILLS = [3, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])]


@dataclass(frozen=True, slots=True)
class Call:
    """One line of the other side's log."""

    call: int
    price: str
    job: int
    epoch: int
    step: str


@pytest.mark.parametrize("kills", KILLS)
async def test_every_committed_cost_is_counted_once_while_runners_are_killed(new_world, kills):
    async with new_world() as world:
        await open_till(world, bad=0.15)
        runners = [world.start_runner(f"runner {n}", slots=SLOTS) for n in range(2)]
        await world.booted(*runners)

        ids, held = await buy_and_kill(world, runners, kills)
        await world.wait_ended()

        states = await world.states()
        assert {State.DONE} == {states[id_] for id_ in ids}
        calls = read_log(world)
        counted = await counted_calls(world)
        paid = {number: Decimal(calls[number].price) for number in counted}
        assert paid == counted, "each once, and to the cent"
        forgotten = [call for number, call in calls.items() if number not in counted]
        lost = {
            (job, each.epoch)
            for job in ids
            for each in await world.app.attempts(job)
            if each.ended == "lost"
        }
        of_attempts = Counter((call.job, call.epoch) for call in forgotten)
        assert of_attempts.keys() <= lost, (
            "only a runner that was killed between the answer and the commit forgets"
        )
        assert {1} >= set(of_attempts.values()), "and of each attempt its last call alone"
        assert len(forgotten) <= held, "of what they held when they were killed"
        await accounts_agree(world, counted)


async def test_a_budget_is_never_overshot_by_more_than_what_was_under_way(new_world):
    budget, runners_at_once = 40, 2
    bound = budget + runners_at_once * SLOTS * DEAREST
    async with new_world() as world:
        await open_till(world, bad=0.1)
        await world.app.budgets.set(f"{budget} USD", provider=PROVIDER, per="month")
        ids = await world.submit_all("purchase", [{"steps": 3}] * 20)
        runners = [
            world.start_runner(f"runner {n}", slots=SLOTS) for n in range(runners_at_once)
        ]
        await world.booted(*runners)

        await kill_until_spent(world, runners, 2)
        await world.eventually(lambda: all_aside(world), "whoever would pay waits")
        calls, counted = read_log(world), await counted_calls(world)

        assert budget <= sum(counted.values()) <= bound
        done = {id_ for id_, state in (await world.states()).items() if state is State.DONE}
        assert len(done) < len(ids)
        saved = {id_: len(await world.app.steps(id_)) for id_ in ids if id_ not in done}

        await world.app.budgets.set("100000 USD", provider=PROVIDER, per="month")
        await world.wait_ended()

        assert {State.DONE} == {(await world.states())[id_] for id_ in ids}
        later = [call for n, call in read_log(world).items() if n not in calls]
        for id_, steps in saved.items():
            bought = {call.step for call in later if call.job == id_}
            assert {f"buy {n}" for n in range(steps, 3)} == bought, (
                "nothing saved is paid again"
            )


async def buy_and_kill(
    world: World, runners: list[Process], kills: int
) -> tuple[list[int], int]:
    """There is something to buy for as long as there is somebody to kill. All jobs, and how many of
    them were held by whoever was killed: what settles has left its slot, and is held until then."""
    ids: list[int] = []
    held = 0
    while kills:
        if await world.count_open() < FEW:
            ids += await world.submit_all("purchase", [{"steps": 4}] * FEW)
        left = await killed_one(world, runners)
        kills -= left > 0
        held += left
    return ids, held


async def kill_until_spent(world: World, runners: list[Process], kills: int) -> None:
    while kills and not await all_aside(world):
        kills -= await killed_one(world, runners) > 0


async def killed_one(world: World, runners: list[Process]) -> int:
    """Kill one that holds jobs, and start another in its place; how many it held, 0 where it did not
    come to that."""
    await asyncio.sleep(world.rng.uniform(0.02, 0.2))
    place = world.rng.randrange(len(runners))
    victim = runners[place]
    victim.send(signal.SIGSTOP)  # nothing changes between the look and the kill
    held = await held_by(world, victim)
    if not held or await holds_suspect(world, victim):
        victim.send(signal.SIGCONT)
        return 0
    world.kill(victim)
    runners[place] = world.start_runner(f"runner {place}", slots=SLOTS)
    return held


async def all_aside(world: World) -> bool:
    counts = await world.app.insights.counts()
    waiting = await world.app.jobs(state="waiting", limit=50)
    gate = f"budget:provider:{PROVIDER}:month"
    return (
        State.RUNNING not in counts
        and bool(waiting)
        and {gate} == {job.aside for job in waiting}
    )


async def accounts_agree(world: World, counted: dict[int, Decimal]) -> None:
    """Whatever they are told by, they come to the same."""
    total = sum(counted.values())
    for seen in (
        await world.app.costs.total(),
        await world.app.costs.by_kind("purchase"),
        await world.app.costs.by_application("shop"),
        await world.app.costs.by_day(2),
    ):
        assert total == sum(each.spent.usd for each in seen)
        assert len(counted) == sum(each.spent.units["calls"] for each in seen if each.spent.usd)


async def counted_calls(world: World) -> dict[int, Decimal]:
    """What each call is said to have cost, by the number it was given."""
    seen = await world.app.costs.by_provider(PROVIDER)
    return {int(each.model): each.spent.usd for each in seen if each.spent.usd}


def read_log(world: World) -> dict[int, Call]:
    lines = whole_lines(world.folder / "paid.log")
    return {call.call: call for call in (Call(**json.loads(line)) for line in lines)}


async def open_till(world: World, **how: Any) -> Process:
    told = {
        "log": str(world.folder / "paid.log"),
        "port_file": str(world.folder / PAID_PORT),
        "seed": world.seed,
        **how,
    }
    till = world.start("till", "tests.chaos.paid_service", told)

    async def listens() -> bool:
        return (world.folder / PAID_PORT).exists()

    await world.eventually(listens, "the other side listens")
    return till
