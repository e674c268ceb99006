"""What every attempt of one runner instance shares."""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol

from retoma.db import Database
from retoma.engine.costs.budgets import Budgets
from retoma.engine.isolation.isolate import Isolate
from retoma.engine.limits.breakers import Breakers
from retoma.engine.limits.rates import Rates
from retoma.engine.log import get_logger
from retoma.engine.ports import Clock
from retoma.engine.rules.job import Held
from retoma.engine.run.byte_budget import ByteBudget
from retoma.engine.run.heartbeat import Heartbeat
from retoma.engine.run.shared_writes import Shared
from retoma.engine.run.step_transaction import Effects
from retoma.engine.run.stop_request import Why
from retoma.engine.traces import Traces
from retoma.engine.writing.database_health import Trouble
from retoma.engine.writing.evidence import Keeper
from retoma.engine.writing.group_writer import Writer

log = get_logger("retoma.attempt")


class AttemptOwner(Protocol):
    """Who owns the attempts: it hears of their ends, and stops them by their claims."""

    def look(self, queue: str) -> None:
        """A job of this queue may be due."""

    def handler_ended(self, held: Held) -> None:
        """The slot is free; the end is not settled yet."""

    def ended(self, held: Held, error: BaseException | None) -> None:
        """It is settled; `error`: it could not be, and its job is to be given back."""

    def abandon(self, task: "asyncio.Task[Any]") -> None:
        """This task does not let go, and its attempt has ended without it."""

    def run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run this beside the attempts, until the runner instance ends."""

    def stop(self, held: Held, why: Why) -> None: ...
    def overdue(self, held: Held, late: str) -> None:
        """A step of it is past its time and does not let go."""


@dataclass(slots=True, kw_only=True, eq=False)
class RunnerServices:
    """The database, the writers and the limits that attempts use."""

    instance: str
    database: Database
    effects: Effects
    writer: Writer
    trouble: Trouble
    heartbeat: Heartbeat
    isolate: Isolate
    keeper: Keeper
    clock: Clock
    rng: Random
    owner: AttemptOwner
    let_go: float
    timezone: str
    keep_reuse: float | None
    step_memory: ByteBudget
    traces: Traces | None = None
    database_id: str = ""  # known once the instance is written
    loop: asyncio.AbstractEventLoop = field(init=False)
    breakers: Breakers = field(init=False)
    budgets: Budgets = field(init=False)
    rates: Rates = field(init=False)
    shared: Shared = field(init=False)
    log: Any = field(init=False)  # bound once: a filtered line must cost nothing
    debugging: bool = field(init=False)

    def __post_init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.breakers = Breakers(self.database, self.clock)
        self.budgets = Budgets(self.database, self.instance, self.timezone)
        self.rates = Rates(self.database, self.clock, self.instance)
        self.shared = Shared(self.effects)
        self.log = log.bind(runner=self.instance)
        self.debugging = _would_print(self.log, logging.DEBUG)


def _would_print(logger: Any, level: int) -> bool:
    """Whether a line of this level goes anywhere; loggers that cannot tell are asked each time."""
    return bool(getattr(logger, "is_enabled_for", lambda _: True)(level))
