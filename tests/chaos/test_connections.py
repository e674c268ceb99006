"""Three connections for each runner process, however many slots it has and whatever its jobs use."""

import asyncio
import signal
import sys

import psycopg
import pytest

from tests.chaos.test_remote import open_service
from tests.chaos.test_versions import ended
from tests.chaos.world import World

SLOTS = 1_000
EACH = 3  # writes; claims and reads; the pulse
THEIRS = (
    "SELECT count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND application_name LIKE 'retoma %%'"
    " AND NOT pid = ANY(%s)"
)
OURS = "SELECT array_agg(pid) FROM pg_stat_activity WHERE datname = current_database()"
ALIVE = "SELECT count(*) FROM retoma.runners WHERE state = 'alive'"
OFTEN = 0.01  # seconds
LOOKS = 20  # at connections, for one at how far the work is


@pytest.fixture
def database_url(postgres_url: str) -> str:
    """A file has no connections."""
    return postgres_url


@pytest.mark.parametrize(
    ("processes", "jobs"),
    [(1, 500), (2, 300), pytest.param(4, 40_000, marks=pytest.mark.soak)],
)
async def test_a_runner_process_has_three_connections_under_any_load(
    new_world, database_url, processes, jobs
):
    async with new_world() as world:
        await open_service(world)
        await submit_some(world, 1)  # our own connections are open from here on
        with psycopg.connect(database_url, autocommit=True) as server:
            [[ours]] = server.execute(OURS).fetchall()

            async def all_alive() -> bool:
                [[alive]] = server.execute(ALIVE).fetchall()
                return bool(alive == processes)

            fleet = world.start_command("many", command(processes))
            # Else the first one might do all of it before the last one has come.
            await world.eventually(all_alive, "all have come")
            await submit_some(world, jobs)
            seen = await watch(world, server, ours, jobs)
            fleet.send(signal.SIGTERM)  # killed, it would leave its runners to find out
            await world.eventually(lambda: ended(fleet), "all have left")

        assert EACH * processes == max(seen), f"{len(seen)} looks saw {sorted(set(seen))}"


async def submit_some(world: World, jobs: int) -> None:
    """Of all that may want a connection."""
    await world.app.pools.declare("things", {f"thing {n}": n for n in range(50)})
    await world.app.rates.set("site", 10_000, burst=10_000)
    await world.submit_all("mission", [{"day": n} for n in range(min(jobs, 20))])
    await world.submit_all("borrow", [{"scope": "attempt", "ms": 1}] * min(jobs, 40))
    await world.app.submit_many("call", [{}] * min(jobs, 100))
    await world.app.submit_many("chain", [{"steps": 2, "ms": 20}] * jobs)


def command(processes: int) -> list[str]:
    many = ["--processes", str(processes), "--slots", str(SLOTS)]
    return [sys.executable, "-m", "retoma", "runner", "--app", "tests.chaos.app:app", *many]


async def watch(
    world: World, server: "psycopg.Connection", ours: list[int], jobs: int
) -> list[int]:
    """How many connections there were, look by look, until most of the work is done. Asks nothing
    through our own app meanwhile: it may open connections too."""
    seen: list[int] = []

    async def most_are_done() -> bool:
        for _ in range(LOOKS):
            seen.extend(row[0] for row in server.execute(THEIRS, [ours]).fetchall())
            await asyncio.sleep(OFTEN)
        steps = {e.job for e in world.effects() if e.step == "step1" and e.phase == "end"}
        return len(steps) > 0.9 * jobs

    await world.eventually(most_are_done, "most of the work is done")
    return seen
