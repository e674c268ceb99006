"""From the death of a runner to the last of its jobs at work again."""

import time
from typing import Any

from bench import ours
from bench.child import beside, call
from bench.compare import Figures, Measure
from bench.latency import start_slowly
from bench.ours import Address, wait_until
from bench.places import Places
from bench.span import MICROSECONDS

HERE = "bench.reclaim"
HELD = "SELECT count(*) FROM jobs WHERE state = 'running' AND epoch = {epoch}"
LAST = "SELECT max(at) FROM events WHERE type = 'claimed' AND epoch = 2"


# --- In the parent


def reclaim(at: Address, jobs: int, host: str = "") -> Measure:
    """Seconds after kill -9 until another runner has begun all of its jobs.

    `host`: what the other one's machine is called; it cannot see then that the process is gone.
    """

    def measure(places: Places) -> Figures:
        url = at(places)
        call(f"{ours.HERE}:fill", url=url, kind="patient", jobs=jobs)
        with beside(f"{ours.HERE}:work", url=url, slots=jobs) as first:
            call(f"{HERE}:wait_held", url=url, jobs=jobs, epoch=1)
            with beside(f"{ours.HERE}:work", url=url, slots=jobs, host=host):
                call(f"{HERE}:wait_for_runners", url=url, runners=2)
                died = time.time()
                first.kill()
                return (call(f"{HERE}:wait_held", url=url, jobs=jobs, epoch=2) - died,)

    return measure


# --- In a child


def wait_held(url: str, jobs: int, epoch: int) -> float:
    """When the last of them was claimed; by the database's clock, which is this machine's."""
    ask = asking(url)
    wait_until(lambda: ask(HELD.format(epoch=epoch)) == jobs)
    at = ask(LAST)
    if at is None:
        return 0.0
    return float(at / MICROSECONDS if isinstance(at, int) else at.timestamp())


def wait_for_runners(url: str, runners: int) -> None:
    ask = asking(url)
    wait_until(lambda: ask("SELECT count(*) FROM runners WHERE state = 'alive'") == runners)
    start_slowly()  # it has looked around and knows its neighbour


def asking(url: str) -> Any:
    if url.startswith("sqlite:"):
        import apsw

        file = apsw.Connection(url.removeprefix("sqlite:///"))
        return lambda question: file.execute(question).get
    import psycopg

    server = psycopg.connect(url, autocommit=True, options="-c search_path=retoma")
    return lambda question: server.execute(question).fetchall()[0][0]
