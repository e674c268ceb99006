"""Procrastinate on PostgreSQL: async tasks, its own pool of connections, NOTIFY for its wake-ups."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from time import perf_counter, time_ns
from typing import Any, TypeVar

from bench.child import beside, call, together
from bench.compare import Absent, Best, Figures, Measure
from bench.latency import Pace, figures_of, start_slowly, submitting
from bench.places import Places

T = TypeVar("T")

NAME = "Procrastinate"
HERE = "bench.peers.peer_procrastinate"
SIDE = "procrastinate"
CHUNK = 5_000  # jobs per bulk defer


@dataclass(frozen=True, slots=True)
class Settings:
    """Jobs at a time, and connections in the pool."""

    concurrency: int
    pool: int


CANDIDATES = (Settings(10, 10), Settings(50, 10), Settings(100, 20))


# --- In the parent


def drain(jobs: int, processes: int) -> Measure:
    def measure(places: Places, settings: Settings) -> Figures:
        dsn = prepared(places)
        call(f"{HERE}:fill", dsn=dsn, jobs=jobs)
        together(processes, f"{HERE}:work", dsn=dsn, **asdict(settings))
        return (jobs / call(f"{HERE}:span", dsn=dsn, jobs=jobs),)

    return Best(measure, CANDIDATES)


def enqueue_bulk(jobs: int) -> Measure:
    return lambda places: (jobs / call(f"{HERE}:fill", dsn=prepared(places), jobs=jobs),)


def latency(pace: Pace) -> Measure:
    def measure(places: Places) -> Figures:
        dsn = prepared(places)
        call(f"{HERE}:fill", dsn=dsn, jobs=0)
        with beside(f"{HERE}:listen", dsn=dsn, expected=pace.submits) as runner:
            start_slowly()
            call(f"{HERE}:submit_paced", dsn=dsn, **asdict(pace))
            return figures_of(runner.answer(), pace)

    return measure


def prepared(places: Places) -> str:
    if find_spec("procrastinate") is None:
        raise Absent("not installed: procrastinate")
    return places.postgres(SIDE)


# --- In a child


def fill(dsn: str, jobs: int) -> float:
    """Seconds to defer `jobs` in bulk, the schema being there."""
    return run(fill_queue(dsn, jobs))


async def fill_queue(dsn: str, jobs: int) -> float:
    async with opened(dsn) as app:
        await app.schema_manager.apply_schema_async()
        task = app.task(name="noop")(do_nothing)
        began = perf_counter()
        for start in range(0, jobs, CHUNK):
            numbers = range(start, min(start + CHUNK, jobs))
            await task.batch_defer_async(*({"number": number} for number in numbers))
        return perf_counter() - began


def work(dsn: str, concurrency: int, pool: int) -> None:
    run(work_until_empty(dsn, concurrency, pool))


async def work_until_empty(dsn: str, concurrency: int, pool: int) -> None:
    async with opened(dsn, pool) as app:
        app.task(name="noop")(do_nothing)
        await app.run_worker_async(
            wait=False, concurrency=concurrency, install_signal_handlers=False
        )


async def do_nothing(number: int) -> None:  # noqa: ARG001  # given by its name
    return None


def span(dsn: str, jobs: int) -> float:
    """Seconds from the first start to the last success, by the database's clock."""
    import psycopg

    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            """SELECT CAST(extract(epoch FROM max(at) FILTER (WHERE type = 'succeeded')
                                            - min(at) FILTER (WHERE type = 'started')) AS float8),
                      count(*) FILTER (WHERE type = 'succeeded')
                 FROM procrastinate_events"""
        ).fetchall()
    seconds, done = rows[0]
    assert done == jobs, f"Procrastinate finished {done} of {jobs} jobs"
    return float(seconds)


def submit_paced(dsn: str, **pace: Any) -> None:
    run(submit_one_by_one(dsn, Pace(**pace)))


async def submit_one_by_one(dsn: str, pace: Pace) -> None:
    async with opened(dsn) as app:
        task = app.task(name="start")(do_nothing)
        await submitting(pace, lambda sent: task.defer_async(number=sent))


def listen(dsn: str, expected: int) -> list[int]:
    return run(listen_for(dsn, expected))


async def listen_for(dsn: str, expected: int) -> list[int]:
    """Nanoseconds from submit to start of each job, in the order they came."""
    waits: list[int] = []
    heard_all = asyncio.Event()

    async def start(number: int) -> None:
        waits.append(time_ns() - number)
        if len(waits) == expected:
            heard_all.set()

    async with opened(dsn) as app:
        app.task(name="start")(start)
        worker = asyncio.create_task(app.run_worker_async(install_signal_handlers=False))
        await heard_all.wait()
        worker.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await worker
    return waits


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    import uvloop

    return uvloop.run(coroutine)


@contextlib.asynccontextmanager
async def opened(dsn: str, pool: int = 4) -> AsyncIterator[Any]:
    from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found,import-untyped,unused-ignore]

    app = App(connector=PsycopgConnector(conninfo=dsn, min_size=pool, max_size=pool))
    async with app.open_async():
        yield app
