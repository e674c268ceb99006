"""`python -m tests.apps.ads.run_orchestrator URL KEY_FILE NAME [CRASH]`: one orchestrator.

CRASH is `POST.POINT` or `POST.POINT=PID`: the first time it comes by there it dies with -9, or the group
of that process does; with `POST.POINT=dream` it says so and stays there until it gets SIGUSR1. The POSTs are `session`, `scrape`, `cancel` and `process`; their points, in their order:

    intent    nobody knows yet that it is to be sent
    request   that is known, and it has not gone out
    answer    it has come back, and nobody has written that down
    saved     that is written down, and nothing has followed
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from retoma import Retoma
from retoma.apps.ads import APP
from retoma.apps.ads.clients import WorkerClient, WriterClient
from retoma.engine.handlers.context import Context
from retoma.engine.handlers.remote import Call
from retoma.engine.rules.states import StepState
from retoma.outbound import Outbound
from retoma.toolkit.tools import Tools

SENT: dict[str, tuple[type, str]] = {
    "session": (WorkerClient, "open_session"),
    "scrape": (WorkerClient, "start_scrape"),
    "cancel": (WorkerClient, "cancel_scrape"),
    "process": (WriterClient, "process"),
}
POINTS = [
    f"{post}.{point}"
    for post in SENT
    for point in ("intent", "request", "answer", "saved")
    if (post, point) != ("cancel", "intent")  # whoever cancels has written that down before
]
ASK = "ask"  # the step that asks for a session
DREAM = "dream"
DREAMS = "dreams"  # what it says then


class Death:
    """Waits at one point."""

    def __init__(self, told: str) -> None:
        where, _, whom = told.partition("=")
        self.post, _, self.point = where.partition(".")
        self._dreams = whom == DREAM
        self._victim = -1 if self._dreams else int(whom or 0)

    async def come(self) -> None:
        if self._dreams:
            self._dreams = False
            woken = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, woken.set)
            print(DREAMS, flush=True)
            await woken.wait()
        victim, self._victim = self._victim, -1
        if victim == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if victim > 0:
            os.killpg(victim, signal.SIGKILL)

    def arm(self) -> None:
        if self.point in ("request", "answer"):
            self._around(*SENT[self.post], lambda _: True)
        elif self.post == "session":
            name = "keep" if self.point == "intent" else "_save"
            self._around(Context, name, lambda told: told[1].name == ASK)
        elif self.post == "cancel":
            self._around(Call, "_end", lambda _: True)
        else:
            state = StepState.BEGUN if self.point == "intent" else StepState.SAVED
            self._around(
                Call,
                "_kept",
                lambda told: told[1].name.endswith(self.post) and told[3] is state,
            )

    def _around(self, where: type, name: str, mine: Callable[[tuple[Any, ...]], bool]) -> None:
        honest = getattr(where, name)
        before = self.point in ("intent", "request")

        @wraps(honest)
        async def deadly(*told: Any, **how: Any) -> Any:
            if before and mine(told):
                await self.come()
            made = await honest(*told, **how)
            if not before and mine(told):
                await self.come()
            return made

        setattr(where, name, deadly)


async def main(url: str, key_file: str, name: str, crash: str = "") -> None:
    if crash:
        Death(crash).arm()
    out = Outbound(private=frozenset({"127.0.0.1"}))
    async with Retoma(url) as app, out:
        app.install(APP, Tools(app, out, key_file=Path(key_file)))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, app.stop)
        await app.run(name=name, slots=20, tick=0.25)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
