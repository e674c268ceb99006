"""People who press the same button in several processes, some of which die at it (E12)."""

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from retoma import Retoma, State
from retoma.engine import store
from tests import nursery
from tests.engine.aids import boot, claim, rows
from tests.engine.test_batch_verbs import batch_of, dead, whole

JOBS = 2_500  # three bites
PRESS = """
import asyncio, sys
from retoma import Retoma

async def press(url, batch, verb):
    async with Retoma(url) as app:
        print(await getattr(await app.batches.get(int(batch)), verb)(), flush=True)

asyncio.run(press(*sys.argv[1:]))
"""


async def pressed(url: str, batch: int, verb: str, crash: str = "") -> tuple[int, int]:
    """A process that calls the verb: how it ended, and how many jobs it says it moved."""
    done = await asyncio.to_thread(
        nursery.run,
        [sys.executable, "-c", PRESS, url, str(batch), verb],
        env={**os.environ, "RETOMA_CRASHPOINT": crash},
        stdout=subprocess.PIPE,
    )
    return done.returncode, int(done.stdout or 0)


async def bury_all(app: Retoma, jobs: int) -> None:
    database = await app.database()
    me = await boot(database)

    def settle(tx: Any) -> None:
        tx.finish(store.settles(me, ends))

    while jobs > 0:
        claims = await claim(database, me, slots=500)
        ends = [store.settle_row(each.held, dead()) for each in claims]
        await database.write(settle, verb="settle")
        jobs -= len(claims)


@pytest.mark.parametrize("where", [pytest.param("before", marks=pytest.mark.soak), "after"])
async def test_e12_whoever_dies_at_the_button_others_finish_it_and_no_job_is_tried_twice(
    database_url, where
):
    async with Retoma(database_url) as app:
        batch = await batch_of(app, JOBS)
        await bury_all(app, JOBS)

        crash = f"bulk.{where}_commit=kill@2"
        ends = await asyncio.gather(
            pressed(database_url, batch.id, "retry_failed", crash),
            *[pressed(database_url, batch.id, "retry_failed") for _ in range(2)],
        )
        rest = await batch.retry_failed()

        died, *lived = ends
        assert died[0] in (0, -signal.SIGKILL)  # unless the others left it one bite only
        assert [0, 0] == [code for code, _ in lived]
        assert 0 == rest
        assert {State.WAITING: JOBS} == await batch.counts()
        generations = "SELECT DISTINCT generation FROM jobs"
        assert [(2,)] == await rows(await app.database(), generations)
        await whole(app)


async def test_what_a_dead_process_began_the_next_call_goes_on_with(database_url):
    async with Retoma(database_url) as app:
        batch = await batch_of(app, JOBS)

        died = await pressed(database_url, batch.id, "cancel", "bulk.after_commit=kill@2")
        between = await batch.counts()
        lived = await pressed(database_url, batch.id, "cancel")

        assert ((-signal.SIGKILL, 0), (0, JOBS - 2_000)) == (died, lived)
        assert {State.CANCELED: 2_000, State.WAITING: JOBS - 2_000} == between
        assert {State.CANCELED: JOBS} == await batch.counts()
        await whole(app)
