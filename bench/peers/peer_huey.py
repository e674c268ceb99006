"""Huey on SQLite: WAL and fsync on, which is our own `synchronous=FULL`; threads or processes, as is faster here."""

import logging
import threading
import time
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from time import perf_counter, time_ns
from typing import Any

from bench.child import beside, call
from bench.compare import Absent, Best, Figures, Measure
from bench.latency import Pace, figures_of, start_slowly, submitting_blocking
from bench.places import Places

NAME = "Huey"
HERE = "bench.peers.peer_huey"
SIDE = "huey"
CALLERS = 8  # threads; more were slower
LOOK = 0.01  # seconds between two looks at the queue


@dataclass(frozen=True, slots=True)
class Settings:
    workers: int
    kind: str


CANDIDATES = (Settings(1, "process"), Settings(2, "process"), Settings(4, "thread"))


# --- In the parent


def drain(jobs: int) -> Measure:
    def measure(places: Places, settings: Settings) -> Figures:
        path = prepared(places)
        return (jobs / call(f"{HERE}:work", path=path, jobs=jobs, **asdict(settings)),)

    return Best(measure, CANDIDATES)


def enqueue_singles(jobs: int, concurrency: int) -> Measure:
    """One after the other; then from many threads."""

    def measure(places: Places) -> Figures:
        alone = call(f"{HERE}:submit", path=prepared(places), jobs=jobs, callers=1)
        crowd = call(f"{HERE}:submit", path=prepared(places), jobs=jobs, callers=concurrency)
        return jobs / alone, jobs / crowd

    return measure


def latency(pace: Pace) -> Measure:
    """With its default polling: 0.1 s, longer while nothing comes."""

    def measure(places: Places) -> Figures:
        path = prepared(places)
        with beside(f"{HERE}:listen", path=path, expected=pace.submits) as runner:
            start_slowly()
            call(f"{HERE}:submit_paced", path=path, **asdict(pace))
            return figures_of(runner.answer(), pace)

    return measure


def prepared(places: Places) -> str:
    if find_spec("huey") is None:
        raise Absent("not installed: huey")
    return places.file(SIDE)


# --- In a child


def work(path: str, jobs: int, workers: int, kind: str) -> float:
    """Seconds from the consumer's start to the empty queue."""
    huey = open_huey(path)
    task = huey.task()(do_nothing)
    fill(huey, task, jobs)
    consumer = huey.create_consumer(workers=workers, worker_type=kind, periodic=False)
    began = perf_counter()
    consumer.start()
    while huey.storage.sql("select 1 from task limit 1", results=True):
        time.sleep(LOOK)
    seconds = perf_counter() - began
    consumer.stop(graceful=True)
    return seconds


def fill(huey: Any, task: Any, jobs: int) -> None:
    """All at once and not measured: it has no bulk enqueue, so its own row is written here."""
    with huey.storage.db(commit=True) as cursor:
        cursor.executemany(
            "insert into task (queue, data, priority) values (?, ?, 0)",
            (
                (huey.storage.name, huey.serialize_task(task.s(number)))
                for number in range(jobs)
            ),
        )


def submit(path: str, jobs: int, callers: int) -> float:
    huey = open_huey(path)
    task = huey.task()(do_nothing)
    share = jobs // callers

    def caller() -> None:
        for number in range(share):
            task(number)

    threads = [threading.Thread(target=caller) for _ in range(callers)]
    began = perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (perf_counter() - began) * jobs / (share * callers)


def submit_paced(path: str, **pace: Any) -> None:
    task = open_huey(path).task(name="start")(do_nothing)
    submitting_blocking(Pace(**pace), task)


def listen(path: str, expected: int) -> list[int]:
    """Nanoseconds from submit to start of each job, in the order they came."""
    waits: list[int] = []
    heard_all = threading.Event()
    huey = open_huey(path)

    def start(sent: int) -> None:
        waits.append(time_ns() - sent)
        if len(waits) == expected:
            heard_all.set()

    huey.task(name="start")(start)
    consumer = huey.create_consumer(workers=1, worker_type="thread", periodic=False)
    consumer.start()
    heard_all.wait()
    consumer.stop(graceful=True)
    return waits


def do_nothing(_number: int) -> None:
    return None


def open_huey(path: str) -> Any:
    from huey import SqliteHuey  # type: ignore[import-not-found,import-untyped,unused-ignore]

    logging.getLogger("huey").setLevel(logging.ERROR)
    return SqliteHuey(filename=path, journal_mode="wal", fsync=True)
