"""One runner of documents, as the nursery forks it; SIGTERM or SIGINT lets it leave.

`quick`: with a reader that dies or hangs at once of the files that the real one takes its time with.
"""

import asyncio
import logging
import os
import signal
from functools import partial
from tempfile import mkstemp
from typing import Any

import structlog

from retoma import Retoma
from retoma.apps.documents import APP, contents
from retoma.apps.documents import steps as story
from retoma.apps.documents.sandbox import KEY, MODEL
from retoma.console.processes import leave_anyway
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.toolkit.tools import Tools
from tests.apps.documents.readers import read_or_die

LITTLE = 2.0  # seconds of the processor, which no good file of ours needs
PATIENT = 600.0  # seconds for what a machine may be too busy for, and nothing of ours waits for


def settings_for(port: int, url: str) -> Settings:
    return Settings(
        database_url=url,
        openrouter_url=f"http://127.0.0.1:{port}/api/v1",
        openrouter_key=KEY,
        openrouter_model=MODEL,
    )


async def main(url: str, port: int, name: str, slots: int) -> None:
    async with Retoma(url) as app, Outbound(private=frozenset({"127.0.0.1"})) as out:
        app.install(APP, Tools(app, out, settings=settings_for(port, url)))
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(each, app.stop)
        await app.run(name=name, slots=slots, tick=0.25)


def run(knobs: dict[str, Any]) -> None:
    os.environ.update(knobs.pop("environment"))
    # Who is killed leaves them behind.
    contents.mkstemp = partial(mkstemp, dir=knobs.pop("folder"))  # type: ignore[attr-defined, assignment]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    if knobs.pop("quick"):
        story.read_file = read_or_die  # type: ignore[attr-defined]
        story.PROCESSOR = LITTLE  # type: ignore[misc]
        story.READING = story.ASKING = PATIENT  # type: ignore[misc]
    with asyncio.Runner() as loop:
        loop.run(main(**knobs))
        leave_anyway(1.0)
