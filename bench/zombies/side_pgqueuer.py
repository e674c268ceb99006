"""PgQueuer as the board sees it: `heartbeat_timeout` for recovery, its executor that retries in the database."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg

from bench.zombies.director import LEASE, POLL
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

HERE = "bench.zombies.side_pgqueuer"
ATTEMPTS = 3
STATES = {
    "queued": WAITING,
    "picked": RUNNING,
    "successful": DONE,
    "exception": FAILED,
    "failed": FAILED,
    "canceled": CANCELLED,
    "deleted": GONE,
}
# A job's row leaves the queue when it ends; how it ended is in the log.
ROW = """SELECT CAST(status AS text), attempts, CAST(queue_manager_id AS text)
           FROM pgqueuer WHERE id = %s"""
LAST = """SELECT CAST(status AS text) FROM pgqueuer_log WHERE job_id = %s
           AND status NOT IN ('queued', 'picked') ORDER BY id DESC LIMIT 1"""


class PgQueuerSide:
    """A `Side`."""

    steps = False
    results = False

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.Runner()
        self._loop.run(self._ask("install"))

    def close(self) -> None:
        self._loop.close()

    def worker(self) -> tuple[str, dict[str, Any]]:
        return f"{HERE}:work", {"url": self._url}

    def submit(self, scenario: Scenario) -> Any:
        [job] = self._loop.run(self._ask("enqueue", scenario.kind, scenario.name.encode()))
        return int(job)

    def look(self, job: Any) -> Seen:
        with (
            psycopg.connect(self._url, autocommit=True) as connection,
            connection.transaction(),
        ):
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            row = connection.execute(ROW, [job]).fetchone()
            last = connection.execute(LAST, [job]).fetchone()
        if row is not None:
            status, attempts, manager = row
            return Seen(STATES[status], claim=f"{attempts} {manager}")
        return Seen(STATES[last[0]] if last else GONE)

    def cancel(self, job: Any) -> None:
        self._loop.run(self._ask("mark_job_as_cancelled", [job]))

    def lose(self, worker: str, folder: Path) -> None:
        """A job whose heartbeat is old is picked again by any worker."""

    def in_transaction(self) -> bool:
        return is_idle_in_transaction(self._url)

    async def _ask(self, verb: str, *arguments: Any) -> Any:
        from bench.peers.peer_pgqueuer import queries_on

        async with queries_on(self._url) as queries:
            return await getattr(queries, verb)(*arguments)


# --- In a child


def work(url: str, folder: str, worker: str) -> None:
    import uvloop

    uvloop.run(work_for_ever(url, folder, worker))


async def work_for_ever(url: str, folder: str, worker: str) -> None:
    from pgqueuer import PgQueuer  # type: ignore[import-not-found,import-untyped,unused-ignore]
    from pgqueuer.executors import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        DatabaseRetryEntrypointExecutor,
    )

    from bench.peers.peer_pgqueuer import driver_on

    does = handler(folder, worker)

    async def plain(job: Any) -> None:
        await does.run(job.payload.decode())

    async def retried(job: Any) -> None:
        await does.run(job.payload.decode())

    async def steps(job: Any) -> None:
        await does.both(job.payload.decode())

    def retrying(parameters: Any) -> Any:
        return DatabaseRetryEntrypointExecutor(
            parameters=parameters,
            max_attempts=ATTEMPTS,
            initial_delay=timedelta(seconds=0.1),
        )

    async with driver_on(url) as driver:
        runner = PgQueuer(driver)
        runner.entrypoint(PLAIN)(plain)
        runner.entrypoint(RETRIED, executor_factory=retrying)(retried)
        runner.entrypoint(STEPS)(steps)
        await runner.qm.run(
            dequeue_timeout=timedelta(seconds=POLL),
            heartbeat_timeout=timedelta(seconds=LEASE),
        )
