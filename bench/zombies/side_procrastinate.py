"""Procrastinate as the board sees it: heartbeats, and the periodic task of its how-to that retries stalled jobs."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg

from bench.zombies.director import BEAT, LEASE, POLL
from bench.zombies.judge import Seen
from bench.zombies.ledger import handler
from bench.zombies.postgres import is_idle_in_transaction
from bench.zombies.scenarios import (
    CANCELLED,
    DONE,
    FAILED,
    GONE,
    PLAIN,
    RETRIED,
    RUNNING,
    STEPS,
    WAITING,
    Scenario,
)

HERE = "bench.zombies.side_procrastinate"
CONCURRENCY = 20
EVERY_SECOND = "* * * * * */1"  # its how-to says every tenth minute
ATTEMPTS = 3
STATES = {
    "todo": WAITING,
    "doing": RUNNING,
    "succeeded": DONE,
    "failed": FAILED,
    "cancelled": CANCELLED,
    "aborted": CANCELLED,
}


def make_app(url: str, work: Any = None) -> Any:
    """The three tasks, and the one that retries stalled jobs."""
    from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found,import-untyped,unused-ignore]

    app = App(connector=PsycopgConnector(conninfo=url))

    async def plain(scenario: str) -> None:
        await work.run(scenario)

    async def retried(scenario: str) -> None:
        await work.run(scenario)

    async def steps(scenario: str) -> None:
        await work.both(scenario)

    app.task(name=PLAIN)(plain)
    app.task(name=RETRIED, retry=ATTEMPTS)(retried)
    app.task(name=STEPS)(steps)

    async def retry_stalled_jobs(_context: Any, timestamp: int) -> None:  # noqa: ARG001
        for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=LEASE):
            await app.job_manager.retry_job(job)

    sweep = app.task(queueing_lock="retry_stalled_jobs", pass_context=True)(retry_stalled_jobs)
    app.periodic(cron=EVERY_SECOND)(sweep)
    return app


class Procrastinate:
    """A `Side`."""

    steps = False
    results = False

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.Runner()
        self._app = make_app(url)
        self._loop.run(self._open())

    async def _open(self) -> None:
        await self._app.open_async()
        await self._app.schema_manager.apply_schema_async()

    def close(self) -> None:
        self._loop.run(self._app.close_async())
        self._loop.close()

    def worker(self) -> tuple[str, dict[str, Any]]:
        return f"{HERE}:work", {"url": self._url}

    def submit(self, scenario: Scenario) -> Any:
        task = self._app.tasks[scenario.kind]
        return self._loop.run(task.defer_async(scenario=scenario.name))

    def look(self, job: Any) -> Seen:
        with psycopg.connect(self._url, autocommit=True) as connection:
            found = connection.execute(
                "SELECT CAST(status AS text), abort_requested, attempts"
                " FROM procrastinate_jobs WHERE id = %s",
                [job],
            ).fetchone()
        if found is None:
            return Seen(GONE)
        status, abort_requested, attempts = found
        # A stalled job whose cancel was requested is not retried: it ends as failed.
        cancelled = status == "failed" and abort_requested
        return Seen(CANCELLED if cancelled else STATES[status], claim=str(attempts))

    def cancel(self, job: Any) -> None:
        self._loop.run(self._app.job_manager.cancel_job_by_id_async(job, abort=True))

    def lose(self, worker: str, folder: Path) -> None:
        """A stalled worker is found by the periodic task."""

    def in_transaction(self) -> bool:
        return is_idle_in_transaction(self._url)


# --- In a child


def work(url: str, folder: str, worker: str) -> None:
    import uvloop

    uvloop.run(work_for_ever(url, folder, worker))


async def work_for_ever(url: str, folder: str, worker: str) -> None:
    app = make_app(url, handler(folder, worker))
    async with app.open_async():
        await app.run_worker_async(
            name=worker,
            concurrency=CONCURRENCY,
            fetch_job_polling_interval=POLL,
            abort_job_polling_interval=POLL,
            update_heartbeat_interval=BEAT,
            stalled_worker_timeout=LEASE,
            install_signal_handlers=False,
        )
