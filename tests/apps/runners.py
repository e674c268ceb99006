"""Runners of an application in processes of their own: forked beside its sandbox, travelled over, ended."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2

from retoma import Retoma
from retoma.db import Database, adhoc, moment
from tests.chaos.nursery import Child, Nursery
from tests.chaos.world import HOP
from tests.clock import TestClock
from tests.engine.aids import eventually
from tests.programs.processes import PATIENCE, ROOT, Program, programs

NOW = adhoc("SELECT (SELECT clock())")
BUSY = adhoc(
    "SELECT count(*) FROM jobs WHERE state = 'running'"
    " OR (state = 'waiting' AND (run_at IS NULL OR run_at <= (SELECT clock())))"
)


@contextmanager
def sandbox(
    folder: Path, application: str, *words: str
) -> Iterator[tuple[Program, Nursery, httpx2.Client]]:
    """What the application asks, the process that forks its runners, and who asks the sandbox."""
    runner = f"tests.apps.{application}.run_{application}"
    with (
        programs(folder) as those,
        closing(Nursery(ROOT, {}, runner)) as nursery,
        httpx2.Client(timeout=PATIENCE, trust_env=False) as http,
    ):
        yield those.start("sandbox", application, *words), nursery, http


async def all_wait(database: Database) -> bool:
    """Nobody works, and nobody has anything to claim."""
    [(busy,)] = await database.read(lambda tx: tx.all(BUSY))
    return bool(busy == 0)


async def travel(app: Retoma, clock: TestClock | None, names: Iterable[str]) -> None:
    """Time is later; whoever lives has beaten since."""
    assert clock is not None
    database = await app.database()
    [(now,)] = await database.read(lambda tx: tx.all(NOW))
    landed = moment(now)
    assert landed is not None
    landed += timedelta(seconds=HOP)
    clock.jump(HOP)

    async def beaten() -> bool:
        await database.write(ring, verb="ring")
        seen = await app.runners.list()
        return set(names) <= {x.name for x in seen if x.living and x.beat_at >= landed}

    await eventually(beaten, within=PATIENCE)


def ring(tx: Any) -> None:
    """A pulse that waits by the old time looks at the new one."""
    tx.one(NOW)
    tx.ring("look")


def kill_all(running: Iterable[Child]) -> None:
    for child in running:
        child.kill()
        child.wait()
