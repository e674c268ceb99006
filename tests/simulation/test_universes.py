"""The engine in simulated universes: no promise is broken in any of them, and each is replayed by its seed."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from retoma import Context, Retoma
from retoma.simulation.faults import Faults
from retoma.simulation.simulate import Scenario, Violated, quiet, run_universe, simulate
from retoma.simulation.universe import Universe, make_file
from tests.house.files import ROOT
from tests.simulation.many import KINDS, open_content, run_in_turn, run_many, run_part
from tests.simulation.world import ENDS_WITHIN, scenario

CALM = Faults(span=5.0)
PART = 250  # universes of one test
FIRST = range(0, 2_000, PART)  # seeds with which the parts of the gate begin
IN_SOAK = 100_000
ON_POSTGRES = 1_000  # each takes the server as long as twenty of SQLite's


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", FIRST)
def test_no_promise_is_broken_in_hundreds_of_universes(first):
    """And each kind of fault happens in them: a universe in which nothing goes wrong proves little."""
    tally = run_part(first, first + PART)

    assert [] == tally.violated, "replay: ./run prove --universes 1 --seed …"
    assert set(KINDS) == set(tally.faults)
    assert tally.zombies > PART / 10
    assert tally.longest < ENDS_WITHIN


@pytest.mark.soak
@pytest.mark.timeout(12 * 3600)
def test_no_promise_is_broken_in_a_hundred_thousand_universes():
    tally = run_many(1_000_000, IN_SOAK, 2)

    assert [] == tally.violated, "replay: ./run prove --universes 1 --seed …"


def test_a_universe_on_postgres_is_its_seed_too():
    """The same two universes, each after another one, on statements that SQLite never sees."""
    with open_content("postgres") as file, quiet():
        first, other, again = (run_universe(scenario, seed, file=file) for seed in (5, 6, 5))

    assert first == again
    assert first.trace != other.trace
    assert () == first.violations == other.violations
    assert first.faults


@pytest.mark.soak
@pytest.mark.timeout(12 * 3600)
def test_no_promise_is_broken_in_universes_on_postgres():
    tally = run_in_turn(2_000_000, ON_POSTGRES)

    assert [] == tally.violated, (
        "replay: ./run prove --database postgres --universes 1 --seed …"
    )
    assert set(KINDS) == set(tally.faults)
    assert tally.longest < ENDS_WITHIN


@pytest.mark.parametrize("seed", [5, 118])
def test_a_universe_is_its_seed_in_whatever_process_it_is_played(seed):
    """To the last digit: strings hash differently in the two, and objects lie elsewhere."""
    played = [
        subprocess.run(
            [sys.executable, "-m", "tests.simulation.once", str(seed)],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hashing},
            capture_output=True,
            check=True,
            text=True,
            timeout=600,
        ).stdout
        for hashing in ("1", "2")
    ]
    first, again = map(json.loads, played)

    assert first == again
    assert first["faults"]
    assert first["events"]


def test_another_seed_is_another_universe():
    with quiet():
        file = make_file(scenario().app)
        first, again, other = (run_universe(scenario, seed, file=file) for seed in (5, 5, 6))

    assert first == again, "also where it is not the first of its process"
    assert first.trace != other.trace


def planted() -> Scenario:
    """A carrier that is called again after every crash: the mistake of a first day."""
    app = Retoma("sqlite:///simulated.db")
    parcels: list[int] = []

    async def call_carrier(order: int) -> None:
        parcels.append(order)
        await asyncio.sleep(1.0)

    @app.job
    async def ship(ctx: Context, order: int) -> None:
        await ctx.step("ship", call_carrier, order)

    async def submit(app: Retoma) -> None:
        await app.submit_many("ship", range(5), key="orders")

    def verify() -> list[str]:
        return [f"order {n} was shipped twice" for n in range(5) if parcels.count(n) > 1]

    return Scenario(app=app, submit=submit, verify=verify)


def test_a_planted_mistake_is_found_shrunk_and_replayed():
    with pytest.raises(Violated, match="was shipped twice") as found:
        simulate(planted, universes=100)

    outcome = found.value.outcome
    with quiet():
        whole = run_universe(planted, outcome.seed, file=make_file(planted().app))
    assert len(outcome.faults) < len(whole.faults) / 3
    assert len(outcome.trace) < len(whole.trace)
    assert f"seed={outcome.seed}" in str(found.value)
    with pytest.raises(Violated, match="was shipped twice"):
        simulate(planted, seed=int(outcome.seed), universes=1)


def of_handler(handler: Callable[[Context, int], Awaitable[None]]) -> Scenario:
    """Two jobs with this handler, and half a minute for them to end."""
    app = Retoma("sqlite:///simulated.db")

    async def work(ctx: Context, number: int) -> None:
        await handler(ctx, number)

    async def submit(app: Retoma) -> None:
        await app.submit_many("work", range(2), key="all")

    app.job(work)
    return Scenario(app=app, submit=submit, ends_within=30.0)


async def wait_for_ever(_ctx: Context, number: int) -> None:
    if number:
        await asyncio.Event().wait()


def test_a_job_that_never_ends_is_found():
    with pytest.raises(Violated, match=r"liveness: job \d+ \(work\) is still running"):
        simulate(lambda: of_handler(wait_for_ever), universes=1, faults=CALM)


async def fail() -> None:
    raise LookupError("nobody retrieves this")


async def start_and_forget(_ctx: Context, _number: int) -> None:
    asyncio.get_running_loop().create_task(fail())


def test_an_error_that_nobody_retrieves_is_found():
    """A task of the engine that dies unseen would break no other rule at once."""
    with pytest.raises(Violated, match=r"unhandled: .*LookupError"):
        simulate(lambda: of_handler(start_and_forget), universes=1, faults=CALM)


def test_a_full_runner_rests_while_a_job_is_due():
    """It looked for the job without end: a processor at full speed for as long as all slots were taken."""
    app = Retoma("sqlite:///simulated.db")

    @app.job
    async def work(ctx: Context, length: float) -> None:
        await ctx.step("sleep", asyncio.sleep, length)

    async def submit(app: Retoma) -> None:
        await app.submit(work, 1000.0)
        await app.submit(work, 1.0, delay=10.0)

    universe = Universe(app, 0, make_file(app), faults=CALM, knobs={"slots": 1})

    async def live() -> None:
        client = universe.new_member("client")
        await universe.loop.start_on(client.thread, submit(client.own_app))
        universe.start_runner()
        await asyncio.sleep(900.0)

    with quiet():
        universe.loop.run_until_complete(live())

    assert universe.loop.callbacks < 40_000
