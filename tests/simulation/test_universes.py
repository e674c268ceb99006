"""The engine in simulated universes: no promise is broken in any of them, and each is replayed by its seed."""

import asyncio
import os

import pytest

from retoma import Context, Retoma
from retoma.simulation.faults import Faults
from retoma.simulation.simulate import Scenario, Violated, quiet, run_universe, simulate
from retoma.simulation.universe import Universe, make_file
from tests.simulation.many import run_many
from tests.simulation.world import scenario

CALM = Faults(span=5.0)
IN_GATE = 100
IN_SOAK = 20_000


@pytest.mark.timeout(1800)
def test_no_promise_is_broken_in_a_few_hundred_universes():
    processes = 2 if "PYTEST_XDIST_WORKER" not in os.environ else 1

    assert [] == run_many(0, IN_GATE, processes), "replay: ./run prove --universes 1 --seed …"


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_no_promise_is_broken_in_thousands_of_universes():
    assert [] == run_many(100_000, IN_SOAK, 2), "replay: ./run prove --universes 1 --seed …"


def test_a_universe_is_its_seed():
    with quiet():
        file = make_file(scenario().app)
        first, again, other = (run_universe(scenario, seed, file=file) for seed in (5, 5, 6))

    assert first.trace == again.trace
    assert first.digest == again.digest
    assert first.digest != other.digest
    assert first.faults


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
    assert len(outcome.faults) <= 2, "one kill is enough"
    assert f"seed={outcome.seed}" in str(found.value)
    with pytest.raises(Violated, match="was shipped twice"):
        simulate(planted, seed=int(outcome.seed), universes=1)


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
