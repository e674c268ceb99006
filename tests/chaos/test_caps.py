"""Caps over processes that are killed: never more inside than may be, and all of them end (E16).

The gauge stands outside the queue: each story tells the effect ledger when it comes in and when it
leaves, a sweep over those lines counts how many were inside at once. Beside it, in every snapshot
of the database, what is counted as used is what runs.
"""

import asyncio
from contextlib import suppress

import pytest

from retoma.db import adhoc
from retoma.engine.rules.states import State
from tests.chaos import jobs
from tests.chaos.history import most_inside
from tests.chaos.test_kill import kill_throughout, lost
from tests.chaos.world import World

KEYS = 40
# `used` of each key against the running jobs that name it, alone or beside another.
DRIFTED = adhoc(
    """SELECT l.key, l.used FROM limits l WHERE l.used <> (
    SELECT count(*) FROM jobs j WHERE j.state = 'running' AND (j.limit_key = l.key
        OR j.limit_key LIKE l.key || '\n%' OR j.limit_key LIKE '%\n' || l.key))"""
)


@pytest.mark.parametrize(
    ("each", "kills"),
    [(10, 4), pytest.param(100, 80, marks=[pytest.mark.soak, pytest.mark.timeout(900)])],
)
async def test_e16_forty_keys_of_three_over_four_processes_with_kills(new_world, each, kills):
    async with new_world() as world:
        payloads = [
            {"site": f"s{n // each}", "ms": 200, "fails": int(n % 11 == 0)}
            for n in range(KEYS * each)
        ]
        runners = [world.start_runner(f"runner {n}", slots=25) for n in range(4)]
        await world.booted(*runners)

        batch = await world.app.submit_many("capped", payloads)
        looking = asyncio.create_task(look_for_drift(world))
        hits = await kill_throughout(world, runners, kills)
        await world.wait_ended()
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking

        found = await world.verdict()
        assert {State.DONE: KEYS * each} == await batch.counts()
        assert {0} == {limit.used for limit in await world.limits()}
        assert [] == await looks_drifted(world)
        assert hits
        assert lost(found) >= len(hits)
        inside = most_inside(found)
        reached = [key for key, most in inside.items() if most == jobs.CAP]
        assert len(reached) > KEYS / 2, "a cap that is never reached proves nothing"


async def look_for_drift(world: World) -> None:
    while True:
        drifted = await looks_drifted(world)
        assert not drifted, drifted
        await asyncio.sleep(0.2)


async def looks_drifted(world: World) -> list[tuple[str, int]]:
    database = await world.app.database()
    return [(key, used) for key, used in await database.read(lambda tx: tx.all(DRIFTED))]
