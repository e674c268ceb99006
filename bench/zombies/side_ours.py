"""retoma on either database, as the board sees it: `ctx.step` for steps, its own heartbeats, nothing else."""

import asyncio
import json
from pathlib import Path
from typing import Any

from bench.zombies.director import BEAT, LEASE, POLL
from bench.zombies.judge import Seen
from bench.zombies.ledger import GaveUp, handler
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

HERE = "bench.zombies.side_ours"
SLOTS = 20
STATES = {
    "waiting": WAITING,
    "parked": WAITING,
    "running": RUNNING,
    "done": DONE,
    "skipped": DONE,
    "dead": FAILED,
    "canceled": CANCELLED,
}


def make_app(url: str, work: Any = None) -> Any:
    """The three kinds of job; a process that only asks gives no handler."""
    from retoma import Context, Permanent, Retoma, Retry, Transient

    app = Retoma(url)

    async def plain(_ctx: Context, scenario: str) -> str:
        try:
            return str(await work.run(scenario))
        except GaveUp as error:
            raise Permanent(str(error)) from error

    async def retried(_ctx: Context, scenario: str) -> str:
        try:
            return str(await work.run(scenario))
        except GaveUp as error:
            raise Transient(str(error)) from error

    async def steps(ctx: Context, scenario: str) -> list[str]:
        return [
            await ctx.step(ONE, work.part, scenario, ONE),
            await ctx.step(TWO, work.part, scenario, TWO),
        ]

    for kind, function in ((PLAIN, plain), (RETRIED, retried), (STEPS, steps)):
        app.job(name=kind, retry=Retry(attempts=3, base=0.1, cap=0.1))(function)
    return app


class Ours:
    """A `Side`."""

    steps = True
    results = True

    def __init__(self, url: str) -> None:
        self._url = url
        self._loop = asyncio.Runner()
        self._app = make_app(url)
        self._loop.run(self._app.upgrade())

    def close(self) -> None:
        self._loop.run(self._app.close())
        self._loop.close()

    def worker(self) -> tuple[str, dict[str, Any]]:
        return f"{HERE}:work", {"url": self._url}

    def submit(self, scenario: Scenario) -> Any:
        return self._loop.run(self._app.submit(scenario.kind, scenario.name)).id

    def look(self, job: Any) -> Seen:
        found = self._loop.run(self._app.get(job))
        steps = self._loop.run(self._app.steps(job))
        return Seen(
            STATES[found.state],
            json.loads(found.result) if found.result is not None else None,
            tuple((step.name, json.loads(step.value)) for step in steps if step.value),
            str(found.epoch),
        )

    def cancel(self, job: Any) -> None:
        self._loop.run(self._app.cancel(job))

    def lose(self, worker: str, folder: Path) -> None:
        """A runner whose lease is over is found by the others."""

    def in_transaction(self) -> bool:
        if self._url.startswith("sqlite:"):
            from tests.chaos.world import turn_is_taken

            return turn_is_taken(Path(self._url.removeprefix("sqlite:///")))
        return is_idle_in_transaction(self._url)


# --- In a child


def work(url: str, folder: str, worker: str) -> None:
    from bench.ours import run

    run(work_for_ever(url, folder, worker))


async def work_for_ever(url: str, folder: str, worker: str) -> None:
    async with make_app(url, handler(folder, worker)) as app:
        await app.run(name=worker, slots=SLOTS, lease=LEASE, beat=BEAT, tick=POLL)
