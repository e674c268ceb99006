"""retoma itself, through its library face, as a user would drive it."""

import asyncio
import logging
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import asdict
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from bench.child import ROOT, Failed, beside, call, together
from bench.compare import Absent, Figures, Measure
from bench.latency import Pace, figures_of, start_slowly, submitting
from bench.places import Places
from bench.span import seconds_of

T = TypeVar("T")
Address = Callable[[Places], str]

HERE = "bench.ours"
SIDE = "ours"
STEPS = 10
STARTS = 7  # of a command, for the median of one round
FIRST_JOB = "the first job is done"  # what the demo says
BEATS = 3
PATIENCE = 90.0  # seconds; ten thousand jobs are claimed in less, and two beats are twenty


# --- Where: either database, a fresh one each time


def on_postgres(places: Places) -> str:
    return needed(places).postgres(SIDE)


def on_sqlite(places: Places) -> str:
    return f"sqlite:///{needed(places).file(SIDE)}"


def needed(places: Places) -> Places:
    if find_spec("retoma") is None or find_spec("retoma.library") is None:
        raise Absent("not installed: retoma")
    return places


# --- In the parent


def drain(at: Address, jobs: int, processes: int, slots: int) -> Measure:
    def measure(places: Places) -> Figures:
        url = at(places)
        call(f"{HERE}:fill", url=url, kind="noop", jobs=jobs)
        together(processes, f"{HERE}:work", url=url, slots=slots)
        return (jobs / seconds_of(url, jobs),)

    return measure


def steps(at: Address, jobs: int, slots: int) -> Measure:
    def measure(places: Places) -> Figures:
        url = at(places)
        call(f"{HERE}:fill", url=url, kind="ten_steps", jobs=jobs)
        call(f"{HERE}:work", url=url, slots=slots)
        return (jobs * STEPS / seconds_of(url, jobs),)

    return measure


def enqueue_bulk(at: Address, jobs: int) -> Measure:
    def measure(places: Places) -> Figures:
        return (jobs / call(f"{HERE}:fill", url=at(places), kind="noop", jobs=jobs),)

    return measure


def enqueue_singles(at: Address, jobs: int, concurrency: int) -> Measure:
    """One after the other; then from many callers at once."""

    def measure(places: Places) -> Figures:
        alone = call(f"{HERE}:submit", url=at(places), jobs=jobs, callers=1)
        crowd = call(f"{HERE}:submit", url=at(places), jobs=jobs, callers=concurrency)
        return jobs / alone, jobs / crowd

    return measure


def latency(at: Address, pace: Pace) -> Measure:
    def measure(places: Places) -> Figures:
        url = at(places)
        call(f"{HERE}:fill", url=url, kind="timed", jobs=0)
        with beside(f"{HERE}:listen", url=url, expected=pace.submits) as runner:
            start_slowly()
            call(f"{HERE}:submit_paced", url=url, **asdict(pace))
            return figures_of(runner.answer(), pace)

    return measure


def beats(jobs: int) -> Measure:
    """Rows written, in all our tables, from one beat of a runner with `jobs` running to a later one."""

    def measure(places: Places) -> Figures:
        url = on_postgres(places)
        call(f"{HERE}:fill", url=url, kind="patient", jobs=jobs)
        with beside(f"{HERE}:work", url=url, slots=jobs):
            return (call(f"{HERE}:watch_beats", url=url, jobs=jobs),)

    return measure


def help_seconds(_places: Places) -> Figures:
    """Wall time of `retoma --help`, the program that stands beside this Python."""
    program = shutil.which("retoma", path=str(Path(sys.executable).parent))
    if program is None:
        raise Absent("not installed: the program retoma")
    return (statistics.median(timed_run([program, "--help"]) for _ in range(STARTS)),)


def timed_run(command: list[str]) -> float:
    began = perf_counter()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}:\n{done.stderr[-700:]}")
    return perf_counter() - began


def demo_seconds(_places: Places) -> Figures:
    """From `./run demo` to its first finished job, in a checkout that is warm."""
    if not (ROOT / ".venv" / "stamp").exists():
        raise Absent("not warm: ./run demo has not been run in this checkout")
    began = perf_counter()
    with subprocess.Popen(
        [ROOT / "run", "demo", "--fast"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as demo:
        assert demo.stdout is not None
        seconds = [perf_counter() - began for line in demo.stdout if FIRST_JOB in line]
    if demo.returncode != 0 or not seconds:
        raise Failed(f"./run demo --fast ended with {demo.returncode}")
    return (seconds[0],)


# --- In a child


def fill(url: str, kind: str, jobs: int) -> float:
    """Seconds to submit `jobs` in bulk, the schema being there."""
    return run(fill_queue(url, kind, jobs))


async def fill_queue(url: str, kind: str, jobs: int) -> float:
    from bench.jobs import make_bench

    bench = make_bench(url)
    payloads = [1e9] * jobs if kind == "patient" else [{"number": n} for n in range(jobs)]
    async with bench.app as app:
        await app.upgrade()
        began = perf_counter()
        if jobs:
            await app.submit_many(bench.kinds[kind], payloads, name="bench")
        return perf_counter() - began


def work(url: str, slots: int, host: str = "") -> None:
    run(work_until_idle(url, slots, host))


async def work_until_idle(url: str, slots: int, host: str) -> None:
    from bench.jobs import make_bench

    async with make_bench(url).app as app:
        await app.run(slots=slots, host=host, until_idle=True)


def submit(url: str, jobs: int, callers: int) -> float:
    return run(submit_by(url, jobs, callers))


async def submit_by(url: str, jobs: int, callers: int) -> float:
    from bench.jobs import make_bench

    bench = make_bench(url)
    numbers = iter(range(jobs))

    async def caller() -> None:
        for number in numbers:
            await bench.app.submit(bench.kinds["noop"], {"number": number})

    async with bench.app as app:
        await app.upgrade()
        began = perf_counter()
        await asyncio.gather(*(caller() for _ in range(callers)))
        return perf_counter() - began


def submit_paced(url: str, **pace: Any) -> None:
    run(submit_one_by_one(url, Pace(**pace)))


async def submit_one_by_one(url: str, pace: Pace) -> None:
    from bench.jobs import make_bench

    bench = make_bench(url)
    async with bench.app as app:
        await submitting(pace, lambda sent: app.submit(bench.kinds["timed"], sent))


def listen(url: str, expected: int) -> list[int]:
    return run(listen_for(url, expected))


async def listen_for(url: str, expected: int) -> list[int]:
    """Nanoseconds from submit to start of each job, in the order they came."""
    from bench.jobs import make_bench

    waits: list[int] = []
    heard_all = asyncio.Event()

    def hear(wait: int) -> None:
        waits.append(wait)
        if len(waits) == expected:
            heard_all.set()

    async with make_bench(url, hear).app as app:
        running = asyncio.create_task(app.run(slots=100))
        await heard_all.wait()
        app.stop()
        await running
    return waits


def watch_beats(url: str, jobs: int) -> float:
    """Row writes of the middle one of a few beats: what a house does once in its life may fall into any of them.

    Each look follows a beat by a second, so that one whole beat lies between two of them.
    """
    import psycopg

    with psycopg.connect(url, autocommit=True, options="-c search_path=retoma") as connection:

        def ask(question: str) -> Any:
            return connection.execute(question).fetchall()[0][0]

        wait_until(lambda: ask("SELECT count(*) FROM jobs WHERE state = 'running'") == jobs)
        beat = moments(lambda: ask("SELECT max(beat_at) FROM runners"))
        next(beat)  # the writes of claiming are told to the statistics by then
        seen = [writes(ask)]
        for _ in range(BEATS):
            next(beat)
            seen.append(writes(ask))
        return statistics.median(after - before for before, after in pairwise(seen))


def writes(ask: Callable[[str], Any]) -> int:
    time.sleep(1.5)  # a session tells the statistics at most once a second
    return int(
        ask(
            "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables"
            " WHERE schemaname = 'retoma'"
        )
    )


def moments(ask: Callable[[], object]) -> Iterator[object]:
    """Yields each time the answer has changed."""
    known = ask()
    while True:
        wait_until(lambda: ask() != known)  # noqa: B023  # called before `known` moves on
        known = ask()
        yield known


def wait_until(holds: Callable[[], bool]) -> None:
    until = perf_counter() + PATIENCE
    while not holds():
        if perf_counter() > until:
            raise AssertionError(f"waited {PATIENCE:.0f} s")
        time.sleep(0.1)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop, tuned, and with the log at `info`, as `retoma runner` does: a line per job is for debugging."""
    import structlog
    import uvloop

    from retoma.console.processes import tune_interpreter

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    with tune_interpreter():
        return uvloop.run(coroutine)
