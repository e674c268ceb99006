"""A step that is a transaction: what a story writes is there when its step is, and not before.

The fence comes first. Whoever no longer holds the job writes nothing, and the job's row is locked
before any of the caller's, in the order everybody else locks them.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from retoma import db
from retoma.codec import encode
from retoma.db import Away, Busy, Database, Full, Interrupted, ReplyLost
from retoma.engine import store
from retoma.engine.handlers.kinds import Kinds
from retoma.engine.ops.batches import Batch
from retoma.engine.ports import Clock, Ids
from retoma.engine.rules.errors import LeaseLost
from retoma.engine.rules.job import Held, StepId
from retoma.engine.rules.live_settings import Declared
from retoma.engine.rules.states import StepState
from retoma.engine.run.submission import Submitted
from retoma.engine.run.submit_spans import SubmitSpans
from retoma.engine.run.transaction import Carried, Transaction
from retoma.engine.writing.database_health import Trouble

T = TypeVar("T")

EFFECT = "effect"  # where trouble is met
PAUSE = 0.05  # seconds before it is tried again, doubled up to a second


@dataclass(frozen=True, slots=True)
class Effect:
    """What came of it: the value as it is kept; None where somebody wants the job canceled."""

    text: str | None


CANCELED = Effect(None)


@dataclass(frozen=True, slots=True)
class Effects:
    """What the stories of one boot write in the database themselves."""

    database: Database
    boot: str
    kinds: Kinds
    ids: Ids
    clock: Clock
    trouble: Trouble
    knobs: Declared

    async def write(
        self,
        held: Held,
        step: StepId,
        fn: Callable[[Transaction], Any],
        type_: Any,
        spans: SubmitSpans,
    ) -> Effect:
        """Run it and save the step, or neither. It is called again where nothing had come of it.

        `type_`: what the function says it returns.
        """
        once = _Once(self, held, step, fn, type_, spans)

        async def ask(unsure: bool) -> Effect:
            if unsure and await self.database.read(once.happened):
                return once.last
            return await self.database.write(once.run, verb="effect")

        try:
            return await self.insist(ask)
        except Carried as carried:
            raise carried.error from None

    async def insist(self, ask: Callable[[bool], Awaitable[T]]) -> T:
        """Ask until the database has answered; `ask` is told whether an answer may have been lost."""
        pause, unsure = PAUSE, False
        while True:
            try:
                given = await ask(unsure)
            except (Away, Busy, Full) as error:
                if isinstance(error, Interrupted) and error.callers:
                    raise  # however often it is asked: the caller's own statement takes too long
                if isinstance(error, Full):
                    self.trouble.met(EFFECT, error)
                unsure = unsure or isinstance(error, ReplyLost)
                await self.clock.sleep(pause)
                pause = min(pause * 2, 1.0)
            else:
                self.trouble.over(EFFECT)
                return given

    def lent(self, tx: db.Transaction, spans: SubmitSpans) -> Transaction:
        return Transaction(tx, self.kinds, self.ids, self._batch, spans, self.knobs)

    def _batch(self, made: Submitted) -> Batch:
        about = (made.batch, made.name, made.kind, made.new, made.already)
        return Batch(*about, self.database, self.clock)


class _Once:
    """One such step, as often as it has to be tried."""

    __slots__ = ("_effects", "_fn", "_held", "_spans", "_step", "_type", "last")

    def __init__(
        self,
        effects: Effects,
        held: Held,
        step: StepId,
        fn: Callable[[Transaction], Any],
        type_: Any,
        spans: SubmitSpans,
    ) -> None:
        self._effects = effects
        self._held = held
        self._step = step
        self._fn = fn
        self._type = type_
        self._spans = spans
        self.last = CANCELED

    def run(self, tx: db.Transaction) -> Effect:
        wanted = store.hold_job(tx, self._effects.boot, self._held)
        if wanted is None:
            raise LeaseLost(self._held.job)
        if not wanted:
            return CANCELED
        value = self._effects.lent(tx, self._spans).lend(self._fn)
        text = encode(value, self._type)
        self.last = Effect(text)  # before it is committed: the answer to that may be lost
        store.save_step(tx, self._effects.boot, self._held, self._step, text)
        return self.last

    def happened(self, tx: db.Transaction) -> bool:
        """Whether the last try was committed, though nobody heard of it."""
        return store.saved_already(tx, self._held, self._step, StepState.SAVED)
