"""DBOS as the board sees it: workflows on a queue, an executor id for each process, steps for effects.

The library itself does not find a dead executor: its Conductor does, a service beside it, and tells another
executor to recover. The director takes that part, one lease after the fault.
"""

import time
from pathlib import Path
from typing import Any

from bench.zombies.director import POLL
from bench.zombies.judge import Seen
from bench.zombies.ledger import Handler, handler
from bench.zombies.postgres import is_idle_in_transaction
from bench.zombies.scenarios import (
    CANCELLED,
    DONE,
    FAILED,
    ONE,
    PLAIN,
    RETRIED,
    RUNNING,
    STEPS,
    TWO,
    WAITING,
    Scenario,
)

HERE = "bench.zombies.side_dbos"
APP = "board"
QUEUE = "board"
VERSION = "1"
ATTEMPTS = 3
LOST = (
    "lost."  # a file of this name, with a worker's name behind it: recover what that worker had
)
STATES = {
    "ENQUEUED": WAITING,
    "DELAYED": WAITING,
    "PENDING": RUNNING,
    "SUCCESS": DONE,
    "ERROR": FAILED,
    "CANCELLED": CANCELLED,
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": FAILED,
}


class DbosSide:
    """A `Side`."""

    steps = True
    results = True

    def __init__(self, url: str) -> None:
        from dbos import DBOSClient  # type: ignore[import-not-found,import-untyped,unused-ignore]

        from bench.child import call

        self._url = url
        call(f"{HERE}:migrate", url=url)
        self._client = DBOSClient(system_database_url=url, application_name=APP)

    def close(self) -> None:
        self._client.destroy()

    def worker(self) -> tuple[str, dict[str, Any]]:
        return f"{HERE}:work", {"url": self._url}

    def submit(self, scenario: Scenario) -> Any:
        options = {"queue_name": QUEUE, "workflow_name": scenario.kind, "app_version": VERSION}
        return self._client.enqueue(options, scenario.name).get_workflow_id()

    def look(self, job: Any) -> Seen:
        [found] = self._client.list_workflows(workflow_ids=[job])
        steps = self._client.list_workflow_steps(job)
        return Seen(
            STATES[found.status],
            found.output,
            tuple((step["function_name"], step["output"]) for step in steps),
            str(found.executor_id),
        )

    def cancel(self, job: Any) -> None:
        self._client.cancel_workflow(job)

    def lose(self, worker: str, folder: Path) -> None:
        (folder / f"{LOST}{worker}").touch()

    def in_transaction(self) -> bool:
        return is_idle_in_transaction(self._url)


# --- In a child


def migrate(url: str) -> None:
    launch(url, "migrate", None)


def work(url: str, folder: str, worker: str) -> None:
    from dbos import DBOS

    launch(url, worker, handler(folder, worker))
    recovered = {f"{LOST}{worker}"}  # not its own
    while True:
        for mark in Path(folder).glob(f"{LOST}*"):
            if mark.name not in recovered:
                recovered.add(mark.name)
                DBOS._recover_pending_workflows([mark.name.removeprefix(LOST)])  # noqa: SLF001
        time.sleep(POLL / 10)


def launch(url: str, executor: str, does: Handler | None) -> None:
    from dbos import DBOS

    DBOS(
        config={
            "name": APP,
            "system_database_url": url,
            "executor_id": executor,
            "application_version": VERSION,
            "log_level": "ERROR",
            "enable_otlp": False,
        }
    )

    async def plain(scenario: str) -> str:
        assert does is not None
        return await does.run(scenario)

    async def part(scenario: str, name: str) -> str:
        assert does is not None
        return await does.part(scenario, name)

    async def whole(scenario: str) -> str:
        assert does is not None
        return await does.run(scenario)

    one, two = DBOS.step(name=ONE)(part), DBOS.step(name=TWO)(part)
    again = DBOS.step(
        name=RETRIED, retries_allowed=True, max_attempts=ATTEMPTS, interval_seconds=0.1
    )(whole)

    async def retried(scenario: str) -> str:
        return str(await again(scenario))

    async def steps(scenario: str) -> list[str]:
        return [str(await one(scenario, ONE)), str(await two(scenario, TWO))]

    for name, function in ((PLAIN, plain), (RETRIED, retried), (STEPS, steps)):
        DBOS.workflow(name=name)(function)
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLL / 2)
