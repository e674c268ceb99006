"""What the engine's tests have in common: a runner beside the test, verbs of the store in one line."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from retoma import Retoma
from retoma.db import Database, Lane, adhoc
from retoma.engine import store
from retoma.engine.ports import Process
from retoma.engine.rules.job import Claim, Held, Job
from retoma.engine.rules.retry import Retry
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import State
from retoma.engine.store import NOTHING_BEFORE, Boot, Found, Spot, Submission
from retoma.engine.testing import drain

T = TypeVar("T")

AT_ONCE = Retry(base=0, cap=0)  # three attempts, nobody waits between them


async def eventually(ask: Callable[[], Awaitable[T]], within: float = 60.0) -> T:
    """What it answers once the answer is not empty."""
    async with asyncio.timeout(within):
        while True:
            if answer := await ask():
                return answer
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running(app: Retoma, **knobs: Any) -> AsyncIterator["asyncio.Task[None]"]:
    """A runner beside the test, gone when the block ends."""
    task = asyncio.create_task(app.run(**{"grace": 5.0, **knobs}))
    try:
        await eventually(lambda: _begun(app, task))
        yield task
    finally:
        app.stop()
        async with asyncio.timeout(60):
            await task


async def _begun(app: Retoma, task: "asyncio.Task[None]") -> bool:
    return bool(app._runners) or task.done()


async def run_past_its_deadline(app: Retoma, story: Any, begun: list[Any], **knobs: Any) -> Job:
    """The job of a story that its deadline ends: a longer one where this machine was too slow to
    begin it before."""
    for deadline in (0.3, 3, 30):
        job = await app.submit(story, deadline=deadline)
        await drain(app, **knobs)
        if begun:
            return await app.get(job.id)
    raise AssertionError("no deadline was long enough to begin the story")


# — the store, one verb a line —


def about(kind: str = "work", **how: Any) -> Submission:
    return Submission(**{"kind": kind, "version": 1, "queue": kind, **how})


async def submit(database: Database, n: int = 1, **how: Any) -> None:
    jobs = [str(place) for place in range(n)]
    await database.write(lambda tx: store.submit_jobs(tx, about(**how), jobs), verb="submit")


async def boot(
    database: Database,
    name: str = "me",
    *,
    knows: Sequence[str] = ("work@1",),
    lease: float = 60.0,
    process: Process | None = None,
) -> str:
    me = Boot(
        id=name,
        name=name,
        process=process or Process.this(),
        version="",
        slots=10,
        knows=knows,
    )
    await database.write(lambda tx: store.boot_runner(tx, me, lease), verb="boot")
    return name


async def look(
    database: Database,
    me: str,
    *,
    slots: int = 1,
    suspects: int = 1,
    queues: Sequence[str] = ("work",),
    knows: Sequence[str] = ("work@1",),
    after: tuple[int, int, int] = NOTHING_BEFORE,
) -> Found:
    spots = [Spot(queue, after) for queue in queues]
    return await database.write(
        lambda tx: store.claim_jobs(
            tx, me, spots, knows, slots=slots, suspects=suspects, promote=True
        ),
        verb="claim",
        lane=Lane.CLAIM,
    )


async def claim(database: Database, me: str, **how: Any) -> list[Claim]:
    """What a look gives, in the order in which it would have been given one by one."""
    found = await look(database, me, **how)
    return sorted(found.claims, key=lambda each: (each.priority, each.turn, each.job))


async def settle(database: Database, me: str, held: Held, end: Settlement) -> State | None:
    """The state it is in now; None where the write was refused."""
    row = store.settle_row(held, end)
    [rows] = await database.write(lambda tx: tx.finish(store.settles(me, [row])), verb="settle")
    return State(rows[0][2]) if rows else None


async def rows(database: Database, sql: str) -> list[tuple[Any, ...]]:
    """What only a test may ask: history, counted."""
    return await database.read(lambda tx: tx.all(adhoc(sql)))


async def change(database: Database, sql: str) -> None:
    """What only a test may do."""
    await database.write(lambda tx: tx.run(adhoc(sql)), verb="test")
