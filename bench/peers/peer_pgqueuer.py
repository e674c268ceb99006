"""PgQueuer on PostgreSQL: asyncpg and uvloop, its tables durable, its autovacuum settings applied.

Its guides ask for a large batch where jobs are short, and for a pool where throughput matters; both are
tried here before the first round, and the faster one is kept.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine
from dataclasses import asdict, dataclass
from datetime import timedelta
from importlib.util import find_spec
from time import perf_counter, time_ns
from typing import Any, TypeVar

from bench.child import beside, call, together
from bench.compare import Absent, Best, Figures, Measure
from bench.latency import Pace, figures_of, start_slowly, submitting
from bench.places import Places

T = TypeVar("T")

NAME = "PgQueuer"
HERE = "bench.peers.peer_pgqueuer"
ENTRYPOINT = "noop"
CHUNK = 10_000  # rows per enqueue: larger ones were no faster
SIDE = "pgqueuer"


@dataclass(frozen=True, slots=True)
class Settings:
    """Jobs fetched by one query, and connections in the pool (0: one connection without a pool)."""

    batch: int
    pool: int


CANDIDATES = (Settings(100, 0), Settings(500, 8), Settings(1000, 8))
PRODUCER_POOL = 8


# --- In the parent


def drain(jobs: int, processes: int) -> Measure:
    def measure(places: Places, settings: Settings) -> Figures:
        dsn = prepared(places)
        call(f"{HERE}:fill", dsn=dsn, jobs=jobs)
        together(processes, f"{HERE}:work", dsn=dsn, **asdict(settings))
        return (jobs / call(f"{HERE}:span", dsn=dsn, jobs=jobs),)

    return Best(measure, CANDIDATES)


def enqueue_bulk(jobs: int) -> Measure:
    def measure(places: Places) -> Figures:
        return (jobs / call(f"{HERE}:fill", dsn=prepared(places), jobs=jobs),)

    return measure


def enqueue_singles(jobs: int, concurrency: int) -> Measure:
    """One after the other on one connection; then many callers on a pool."""

    def measure(places: Places) -> Figures:
        alone = call(f"{HERE}:submit_alone", dsn=prepared(places), jobs=jobs)
        crowd = call(
            f"{HERE}:submit_crowd", dsn=prepared(places), jobs=jobs, callers=concurrency
        )
        return jobs / alone, jobs / crowd

    return measure


def latency(pace: Pace) -> Measure:
    def measure(places: Places) -> Figures:
        dsn = prepared(places)
        with beside(f"{HERE}:listen", dsn=dsn, expected=pace.submits) as runner:
            start_slowly()
            call(f"{HERE}:submit_paced", dsn=dsn, **asdict(pace))
            return figures_of(runner.answer(), pace)

    return measure


def prepared(places: Places) -> str:
    for needed in ("pgqueuer", "asyncpg"):
        if find_spec(needed) is None:
            raise Absent(f"not installed: {needed}")
    return places.postgres(SIDE)


# --- In a child


def fill(dsn: str, jobs: int) -> float:
    """Seconds to enqueue `jobs` in bulk."""
    return run(fill_queue(dsn, jobs))


async def fill_queue(dsn: str, jobs: int) -> float:
    async with queries_on(dsn) as queries:
        await queries.install()
        await queries.optimize_autovacuum()
        payloads = [json.dumps({"number": number}).encode() for number in range(jobs)]
        began = perf_counter()
        for start in range(0, jobs, CHUNK):
            chunk = payloads[start : start + CHUNK]
            await queries.enqueue([ENTRYPOINT] * len(chunk), chunk, [0] * len(chunk))
        return perf_counter() - began


def work(dsn: str, batch: int, pool: int) -> None:
    run(work_until_empty(dsn, batch, pool))


async def work_until_empty(dsn: str, batch: int, pool: int) -> None:
    from pgqueuer import PgQueuer  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from pgqueuer.types import QueueExecutionMode  # type: ignore[import-not-found,import-untyped,unused-ignore]

    async with driver_on(dsn, pool) as driver:
        runner = PgQueuer(driver)
        runner.entrypoint(ENTRYPOINT)(do_nothing)
        # The manager alone: the scheduler beside it would only take time from it.
        await runner.qm.run(
            batch_size=batch,
            mode=QueueExecutionMode.drain,
            dequeue_timeout=timedelta(seconds=0.1),
        )


async def do_nothing(_job: Any) -> None:
    return None


def span(dsn: str, jobs: int) -> float:
    """Seconds from the first claim to the last completion, by the database's clock."""
    import psycopg

    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            """SELECT CAST(extract(epoch FROM max(created) FILTER (WHERE status = 'successful')
                                            - min(created) FILTER (WHERE status = 'picked')) AS float8),
                      count(*) FILTER (WHERE status = 'successful')
                 FROM pgqueuer_log"""
        ).fetchall()
    seconds, done = rows[0]
    assert done == jobs, f"PgQueuer finished {done} of {jobs} jobs"
    return float(seconds)


def submit_alone(dsn: str, jobs: int) -> float:
    return run(submit_by(dsn, jobs, callers=1, pool=0))


def submit_crowd(dsn: str, jobs: int, callers: int) -> float:
    return run(submit_by(dsn, jobs, callers, PRODUCER_POOL))


async def submit_by(dsn: str, jobs: int, callers: int, pool: int) -> float:
    async with queries_on(dsn, pool) as queries:
        await queries.install()
        numbers = iter(range(jobs))

        async def caller() -> None:
            for number in numbers:
                await queries.enqueue(ENTRYPOINT, json.dumps({"number": number}).encode())

        began = perf_counter()
        await asyncio.gather(*(caller() for _ in range(callers)))
        return perf_counter() - began


def submit_paced(dsn: str, **pace: Any) -> None:
    run(submit_one_by_one(dsn, Pace(**pace)))


async def submit_one_by_one(dsn: str, pace: Pace) -> None:
    async with queries_on(dsn) as queries:
        await submitting(pace, lambda sent: queries.enqueue(ENTRYPOINT, str(sent).encode()))


def listen(dsn: str, expected: int) -> list[int]:
    return run(listen_for(dsn, expected))


async def listen_for(dsn: str, expected: int) -> list[int]:
    """Nanoseconds from submit to start of each job, in the order they came."""
    from pgqueuer import PgQueuer  # type: ignore[import-not-found,import-untyped,unused-ignore]

    waits: list[int] = []
    async with driver_on(dsn) as driver:
        runner = PgQueuer(driver)

        async def start(job: Any) -> None:
            waits.append(time_ns() - int(job.payload))
            if len(waits) == expected:
                runner.shutdown.set()

        runner.entrypoint(ENTRYPOINT)(start)
        assert runner.queries is not None
        await runner.queries.install()
        await runner.qm.run()
    return waits


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    import uvloop

    return uvloop.run(coroutine)


@contextlib.asynccontextmanager
async def queries_on(dsn: str, pool: int = 0) -> AsyncIterator[Any]:
    from pgqueuer.queries import Queries  # type: ignore[import-not-found,import-untyped,unused-ignore]

    async with driver_on(dsn, pool) as driver:
        yield Queries(driver)


@contextlib.asynccontextmanager
async def driver_on(dsn: str, pool: int = 0) -> AsyncIterator[Any]:
    import asyncpg  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver  # type: ignore[import-not-found,import-untyped,unused-ignore]

    if pool:
        async with asyncpg.create_pool(dsn, min_size=pool, max_size=pool) as connections:
            yield AsyncpgPoolDriver(connections)
    else:
        connection = await asyncpg.connect(dsn)
        yield AsyncpgDriver(connection)
        await connection.close()
