"""One runner of quotes, as the nursery forks it; SIGTERM or SIGINT lets it leave.

`crash` is MOMENT or MOMENT:N, where it dies with -9 when it comes by there for the Nth time:

    analysis.request   that it is about to be paid is known, and it has not gone out
    analysis.answer    it is answered and paid, and nobody has written that down
    search.request     likewise of a search
    search.answer
    page.request       likewise of a shop's page, in the loop over them
    page.answer

`MOMENT=memory` does not die there but finds no memory left. `twice` makes every analysis two calls: it is
there to be found out.
"""

import asyncio
import logging
import os
import resource
import signal
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any

import anthropic  # noqa: F401 — takes seconds, and is inherited by whoever is forked
import structlog

from retoma import Retoma
from retoma.apps.quotes import APP
from retoma.apps.quotes.clients import Analyst, Shopping, Shops
from retoma.console.processes import leave_anyway
from retoma.outbound import Answer, Outbound, Policy
from retoma.toolkit.tools import Tools
from tests.apps.quotes.aids import settings_for

CALLS: dict[str, tuple[type, str]] = {
    "analysis": (Analyst, "analyse"),
    "search": (Shopping, "search"),
    "page": (Shops, "test"),
}
MOMENTS = tuple(f"{call}.{point}" for call in CALLS for point in ("request", "answer"))
LITTLE = 64 << 20  # bytes beside what it has already
MUCH = 1 << 30


class Trap:
    """Waits at one moment, for the Nth that comes by."""

    def __init__(self, told: str) -> None:
        where, _, what = told.partition("=")
        moment, _, nth = where.partition(":")
        self.call, _, self.point = moment.partition(".")
        self._left = int(nth or 1)
        self._spring = exhaust if what == "memory" else die

    def arm(self) -> None:
        where, name = CALLS[self.call]
        honest = getattr(where, name)

        @wraps(honest)
        async def deadly(*told: Any) -> Any:
            if self.point == "request":
                self._come()
            made = await honest(*told)
            if self.point == "answer":
                self._come()
            return made

        setattr(where, name, deadly)

    def _come(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._spring()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def exhaust() -> None:
    """MemoryError, by the kernel: there is no room for what is asked for."""
    usual = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    had = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (had + LITTLE, usual[1]))
    try:
        bytearray(MUCH)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, usual)


def pay_twice() -> None:
    honest = Analyst.analyse

    async def twice(*told: Any) -> Any:
        await honest(*told)
        return await honest(*told)

    Analyst.analyse = twice  # type: ignore[method-assign, assignment]


class Impatient(Outbound):
    """Waits for nobody longer than that."""

    def __init__(self, seconds: float) -> None:
        super().__init__(private=frozenset({"127.0.0.1"}))
        self._seconds = seconds

    async def request(self, policy: Policy, method: str, url: str, **asked: Any) -> Answer:
        soon = replace(policy, deadline=min(self._seconds, policy.deadline))
        return await super().request(soon, method, url, **asked)


async def main(url: str, port: int, key: str, name: str, slots: int, patience: float) -> None:
    async with Retoma(url) as app, Impatient(patience) as out:
        tools = Tools(app, out, settings=settings_for(port, url), key_file=Path(key))
        app.install(APP, tools)
        for each in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(each, app.stop)
        await app.run(name=name, slots=slots, tick=0.25)


def run(knobs: dict[str, Any]) -> None:
    os.environ.update(knobs.pop("environment"))
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.INFO))
    if crash := knobs.pop("crash"):
        Trap(crash).arm()
    if knobs.pop("twice"):
        pay_twice()
    with asyncio.Runner() as loop:
        loop.run(main(**knobs))
        leave_anyway(1.0)
