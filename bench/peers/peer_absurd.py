"""Absurd on PostgreSQL: its Python SDK over the schema that its own tool brings.

Its worker has one connection; more jobs at a time than a few do not help it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

from bench.child import call
from bench.compare import Absent, Best, Figures, Measure
from bench.places import Places

NAME = "Absurd"
HERE = "bench.peers.peer_absurd"
SIDE = "absurd"
QUEUE = "default"
STEPS = 10
LOOK = 0.05  # seconds between two looks whether all is done
FILL = "SELECT absurd.spawn_task(%s, %s, '{}', '{}') FROM generate_series(1, %s)"
DONE = f"SELECT count(*) FROM absurd.r_{QUEUE} WHERE state = 'completed'"  # noqa: S608
SPAN = f"""SELECT CAST(extract(epoch FROM max(completed_at) - min(started_at)) AS float8)
           FROM absurd.r_{QUEUE}"""  # noqa: S608


@dataclass(frozen=True, slots=True)
class Settings:
    """Tasks at a time, and tasks in a claim."""

    concurrency: int
    batch: int


CANDIDATES = (Settings(10, 10), Settings(100, 100))


# --- In the parent


def drain(jobs: int) -> Measure:
    def measure(places: Places, settings: Settings) -> Figures:
        return (jobs / drained(places, settings, "noop", jobs),)

    return Best(measure, CANDIDATES)


def steps(workflows: int) -> Measure:
    def measure(places: Places, settings: Settings) -> Figures:
        return (workflows * STEPS / drained(places, settings, "ten_steps", workflows),)

    return Best(measure, CANDIDATES)


def drained(places: Places, settings: Settings, task: str, jobs: int) -> float:
    for needed in ("absurd_sdk", "absurdctl"):
        if find_spec(needed) is None:
            raise Absent(f"not installed: {needed}")
    dsn = places.postgres(SIDE)
    call(f"{HERE}:fill", dsn=dsn, task=task, jobs=jobs)
    seconds: float = call(f"{HERE}:work", dsn=dsn, jobs=jobs, **asdict(settings))
    return seconds


# --- In a child


def fill(dsn: str, task: str, jobs: int) -> None:
    import psycopg
    from absurdctl import BUNDLED_SCHEMA_SQL  # type: ignore[import-not-found,import-untyped,unused-ignore]

    with psycopg.connect(dsn) as connection:
        connection.execute(BUNDLED_SCHEMA_SQL)
        connection.execute("SELECT absurd.create_queue(%s)", [QUEUE])
        connection.execute(FILL, [QUEUE, task, jobs])


def work(dsn: str, jobs: int, concurrency: int, batch: int) -> float:
    """Seconds from the first start to the last completion, by the database's clock."""
    return asyncio.run(work_until_done(dsn, jobs, concurrency, batch))


async def work_until_done(dsn: str, jobs: int, concurrency: int, batch: int) -> float:
    import psycopg
    from absurd_sdk import AsyncAbsurd  # type: ignore[import-not-found,import-untyped,unused-ignore]

    client = AsyncAbsurd(dsn, queue_name=QUEUE)
    client.register_task("noop")(do_nothing)
    client.register_task("ten_steps")(ten_steps)
    watching = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
    worker = asyncio.create_task(
        client.start_worker(concurrency=concurrency, batch_size=batch, poll_interval=LOOK)
    )

    async def ask(question: Any) -> Any:
        return (await (await watching.execute(question)).fetchall())[0][0]

    while await ask(DONE) < jobs:  # noqa: ASYNC110  # the database has no bell for us
        await asyncio.sleep(LOOK)
    client.stop_worker()
    await worker
    seconds: float = await ask(SPAN)
    return seconds


async def do_nothing(_params: Any, _ctx: Any) -> None:
    return None


async def ten_steps(_params: Any, ctx: Any) -> None:
    for number in range(STEPS):
        await ctx.step(f"step_{number}", echoing(number))


def echoing(number: int) -> Callable[[], Awaitable[int]]:
    async def echo() -> int:
        return number

    return echo
