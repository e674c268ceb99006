"""One runner of embeddings as a program, whose story and provider keep a ledger outside the queue.

`python -m tests.apps.embeddings.run_embeddings '{"name": "worker-1", "slots": 8}'`. While the file `hold` is
in the ledger's folder, a call that has begun does not end. SIGTERM lets it leave.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from retoma import Retoma
from retoma.apps.embeddings import APP
from retoma.apps.embeddings.providers import Embedded, InputType, NGrams
from retoma.apps.embeddings.steps import Documents, kinds_of
from retoma.console.processes import leave_anyway
from retoma.engine.checker.effect_ledger import LedgerWriter, append, lines
from retoma.engine.handlers.context import Context
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.toolkit.tools import Tools
from tests.chaos import jobs

HOLD = "hold"
STORY = "story"


class Witnessed(NGrams):
    """Our own n-grams; each call is told of before it is made, with all its texts."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    async def embed(
        self, texts: Sequence[str], input_type: InputType = InputType.DOCUMENT
    ) -> Embedded:
        tell_call(self._folder, texts)
        while (self._folder / HOLD).exists():  # noqa: ASYNC110 — another process takes it away
            await asyncio.sleep(0.01)
        return await super().embed(texts, input_type)


class Told(Documents):
    """Each execution of a job is told of, under its epoch."""

    def __init__(self, tools: Tools, folder: Path) -> None:
        super().__init__(tools, Witnessed(folder))
        self._ledger = LedgerWriter(folder)

    async def tell(self, ctx: Context, document: int) -> Any:
        self._ledger.effect(ctx, STORY, "start")
        return await super().tell(ctx, document)


def tell_call(folder: Path, texts: Sequence[str]) -> None:
    append(folder / f"calls-{os.getpid()}.jsonl", {"pid": os.getpid(), "texts": [*texts]})


def calls(folder: Path) -> list[dict[str, Any]]:
    return list(lines(folder, "calls-*"))


def asked(folder: Path, *pids: int) -> Counter[str]:
    """How often each text was asked for: by all, or by these."""
    return Counter(
        text
        for call in calls(folder)
        if not pids or call["pid"] in pids
        for text in call["texts"]
    )


def install(app: Retoma, out: Outbound, folder: Path) -> None:
    tools = Tools(app, out, settings=Settings(database_url=app.url))
    kinds = kinds_of(tools, Told(tools, folder))
    app.install(replace(APP, stories=None, schedules=(), kinds=kinds), tools)


async def main(knobs: dict[str, Any]) -> None:
    folder = Path(os.environ[jobs.FOLDER])
    async with Outbound() as out, Retoma(os.environ[jobs.URL]) as app:
        install(app, out, folder)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.stop)
        await app.run(**knobs)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    with asyncio.Runner() as loop:
        loop.run(main(json.loads(sys.argv[1])))
        leave_anyway(1.0)
