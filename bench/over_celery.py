"""Jobs over Celery: hints through the broker, our claim and our settling in the database; beside it plain
Celery on the same server with the same settings, whose jobs are the messages themselves."""

import asyncio
from dataclasses import asdict
from typing import Any

from bench import ours
from bench.child import beside, call
from bench.compare import Best, Figures, Measure
from bench.ours import Address
from bench.peers.peer_celery import (
    CANDIDATES,
    Settings,
    open_celery,
    run_worker,
    server,
)
from bench.places import Places
from bench.span import seconds_of

HERE = "bench.over_celery"
QUEUE = "retoma"
LONGEST = 120.0  # seconds to send all hints
LOOK = 0.2  # seconds between two looks whether all are done


# --- In the parent


def drain(at: Address, jobs: int) -> Measure:
    """Pools and numbers of processes are tried as they are for plain Celery."""

    def measure(places: Places, settings: Settings) -> Figures:
        with server() as broker:
            url = at(places)
            call(f"{HERE}:fill", url=url, broker=broker, jobs=jobs)
            with beside(f"{HERE}:work", url=url, broker=broker, **asdict(settings)):
                call(f"{HERE}:wait_for", url=url, jobs=jobs)
            return (jobs / seconds_of(url, jobs),)

    return Best(measure, CANDIDATES)


# --- In a child


def fill(url: str, broker: str, jobs: int) -> None:
    ours.run(fill_queue(url, broker, jobs))


async def fill_queue(url: str, broker: str, jobs: int) -> None:
    app, _ = make_fleet(url, broker)
    await app.upgrade()
    await app.submit_many("noop", [{"number": n} for n in range(jobs)], name="bench")
    app.dispatcher.flush(LONGEST)
    await app.close()


def work(url: str, broker: str, pool: str, concurrency: int) -> None:
    _, celery = make_fleet(url, broker)
    run_worker(celery, pool, concurrency, f"-Q{QUEUE}")


def wait_for(url: str, jobs: int) -> None:
    ours.run(wait_for_all(url, jobs))


async def wait_for_all(url: str, jobs: int) -> None:
    from bench.jobs import make_bench
    from retoma import State

    async with make_bench(url).app as app:
        # Another process moves them, and has no event for us.
        while (await app.insights.counts()).get(State.DONE, 0) < jobs:  # noqa: ASYNC110
            await asyncio.sleep(LOOK)


def make_fleet(url: str, broker: str) -> tuple[Any, Any]:
    from bench.jobs import make_bench
    from retoma.dispatch.celery import CeleryDispatcher

    app, celery = make_bench(url).app, open_celery(broker)
    CeleryDispatcher(celery, app, queue=QUEUE)
    return app, celery
