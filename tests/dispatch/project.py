"""A Celery project as a team has one: `celery -A tests.dispatch.project worker -Q …`, told by its environment."""

import asyncio
import json
import logging
import os
from pathlib import Path
from typing import Any

import structlog
from celery import Celery

from retoma import Context, Happened, Retoma
from retoma.dispatch.celery import CeleryDispatcher
from retoma.engine.checker.effect_ledger import append
from tests.chaos import jobs
from tests.lines import whole_lines

BROKER, QUEUE, TOLD = "RETOMA_TEST_BROKER", "RETOMA_TEST_QUEUE", "RETOMA_TEST_DISPATCHER"


def build(url: str, folder: Path) -> Retoma:
    """The stories of chaos, and two of our own."""
    app = jobs.build(url, folder)
    till = Till(folder)

    @app.job
    async def pay(ctx: Context, _payload: Any) -> str:
        """Pays once, whatever happens: after a crash it looks whether it has paid."""
        return await ctx.step("pay", till.pay, ctx.job, once=True, reconcile=till.look)

    @app.job
    async def apart(ctx: Context, payload: int) -> int:
        """A step in a child process, also where the runner is a child of a pool."""
        return await ctx.step("double", doubled, payload)

    return app


SLOW = "slow"  # as long as such a file is there the books have written, and do not answer


class Till:
    """Somebody else's books: nothing of it goes through the queue or the database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def pay(self, job: int) -> str:
        append(self._folder / f"paid-{os.getpid()}.jsonl", {"job": job, "pid": os.getpid()})
        while (self._folder / SLOW).exists():  # noqa: ASYNC110 — another process opens it
            await asyncio.sleep(0.02)
        return "paid"

    async def look(self, job: int) -> Happened | None:
        return Happened("paid") if job in payments(self._folder) else None


def payments(folder: Path) -> list[int]:
    """Every payment ever made, by job."""
    return [
        json.loads(line)["job"]
        for path in folder.glob("paid-*.jsonl")
        for line in whole_lines(path)
    ]


def doubled(number: int) -> int:
    return 2 * number


def make_celery(broker: str) -> Celery:
    made = Celery("tests", broker=broker)
    made.conf.broker_connection_retry_on_startup = True
    return made


if BROKER in os.environ:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    celery_app = make_celery(os.environ[BROKER])
    retoma_app = build(os.environ[jobs.URL], Path(os.environ[jobs.FOLDER]))
    dispatcher = CeleryDispatcher(
        celery_app, retoma_app, queue=os.environ[QUEUE], **json.loads(os.environ[TOLD])
    )
