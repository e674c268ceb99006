"""A runner as a program: `python -m tests.chaos.run_runner '{"slots": 20}'`. SIGTERM lets it leave.

The child processes of its steps import this again: what only a runner needs is imported by `run`.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retoma.db import Database, Transaction


async def main(knobs: dict[str, Any]) -> None:
    from retoma import db
    from tests.chaos import jobs

    app = jobs.from_environment()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.stop)
    if mute_until := knobs.pop("mute_until", None):
        gate = Path(os.environ[jobs.FOLDER]) / mute_until
        mute: Any = MuteDatabase(db.open(app.url), gate)
        app.connection.use(mute)
    async with app:
        await app.run(**knobs)


class MuteDatabase:
    """Lets no beat through before its gate opens: a runner that must find out by writing."""

    def __init__(self, database: "Database", gate: Path) -> None:
        self._database = database
        self._gate = gate

    def write_now(self, fn: "Callable[[Transaction], Any]", *, verb: str) -> Any:
        while not self._gate.exists():
            self._database.wait_bell(0.05)
        return self._database.write_now(fn, verb=verb)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


def run(knobs: dict[str, Any]) -> None:
    import structlog

    from retoma.console.processes import leave_anyway
    from tests.chaos import disk

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    if disk.VARIABLE in os.environ:
        disk.watch()
    with asyncio.Runner() as loop:
        loop.run(main(knobs))
        leave_anyway(1.0)


if __name__ == "__main__":
    run(json.loads(sys.argv[1]))
