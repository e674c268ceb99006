"""One runner of matches, as the nursery forks it; SIGTERM or SIGINT lets it leave.

`crash` kills it with -9 over a match that is not among `spared`: after so many statements of the transaction
that stores it, or at a crash point that comes after them.
"""

import asyncio
import os
import signal
from collections.abc import Collection, Sequence
from typing import Any

from retoma import Retoma, logs
from retoma.apps.matches import APP, store
from retoma.apps.matches.store.tasks import Keeping
from retoma.console.processes import leave_anyway
from retoma.db import crashpoint
from retoma.db.crashpoint import Harm
from retoma.outbound import Outbound
from retoma.settings import Settings
from retoma.toolkit.tools import Tools
from tests.apps.matches.aids import Watched


def settings_for(port: int, url: str) -> Settings:
    return Settings(database_url=url, matches_url=f"http://127.0.0.1:{port}")


async def main(url: str, port: int, name: str, slots: int) -> None:
    async with Retoma(url) as app, Outbound(private=frozenset({"127.0.0.1"})) as out:
        app.install(APP, Tools(app, out, settings=settings_for(port, url)))
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(each, app.stop)
        await app.run(name=name, slots=slots, tick=0.25)


class Deadly:
    """Stores matches, until it comes to one that is not spared."""

    def __init__(self, crash: str, spared: Collection[int]) -> None:
        self._keep = store.tasks.keep
        self._crash = crash
        self._spared = spared

    def __call__(self, tx: Any, made: Sequence[Keeping]) -> list[store.tasks.Stored]:
        if all(each.task.id in self._spared for each in made):
            return self._keep(tx, made)
        if self._crash.isdigit():
            return self._keep(dying(tx, int(self._crash)), made)
        crashpoint.arm(self._crash, Harm.KILL)
        return self._keep(tx, made)


def dying(tx: Any, most: int) -> Any:
    """A transaction that has so many statements."""
    left = iter(range(most - 1))

    def die_or_not() -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    return Watched(tx, lambda: None, die_or_not)


def run(knobs: dict[str, Any]) -> None:
    os.environ.update(knobs.pop("environment"))
    logs.configure("INFO")
    crash, spared = knobs.pop("crash"), knobs.pop("spared")
    if crash:
        store.tasks.keep = Deadly(crash, spared)
    with asyncio.Runner() as loop:
        loop.run(main(**knobs))
        leave_anyway(1.0)
