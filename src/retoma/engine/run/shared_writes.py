"""Stories that write at the same moment share one transaction, each behind its own fence.

Who asks first waits for a turn of the loop; while a transaction is under way the others gather. What they
gathered for one function it is called with once. Whoever no longer holds his job is left out of it, and an
error is found by halving: it is its own story's alone. Nothing is kept as a step here: what is written is
what tells, after a crash, that it was done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from retoma import db
from retoma.engine import store
from retoma.engine.rules.errors import LeaseLost
from retoma.engine.rules.job import Held
from retoma.engine.run.step_transaction import Effects
from retoma.engine.run.submit_spans import SubmitSpans
from retoma.engine.run.transaction import Carried, Transaction
from retoma.engine.writing.coalescer import Together

MOST = 1_000  # of size that one transaction takes: others wait for it

Shares = Callable[[Transaction, Sequence[Any]], Sequence[Any]]


class Unwanted(Exception):
    """Somebody wants the job canceled: nothing was written for it."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one story brings along. `size`: how much that is, beside others'."""

    held: Held
    about: Any
    size: int
    spans: SubmitSpans


class Shared:
    """The transactions that the stories of one boot share."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        # One function in a transaction: two would lock rows in an order that neither knows of.
        self._gathered: dict[Shares, Together[Part, Any]] = {}

    async def write(self, fn: Shares, part: Part) -> Any:
        """What the function answers for this part; LeaseLost or Unwanted where it was left out."""
        together = self._gathered.get(fn)
        if together is None:
            ask = partial(self._answers, fn)
            together = self._gathered[fn] = Together(ask, MOST, lambda each: each.size)
        try:
            return await together.asked(part)
        except Carried as carried:
            raise carried.error from None
        finally:
            if together.idle and self._gathered.get(fn) is together:
                del self._gathered[fn]

    async def _answers(self, fn: Shares, parts: Sequence[Part]) -> list[Any]:
        async def ask(_: bool) -> list[Any]:
            # Also where an answer was lost: what is there already is found, not written twice.
            return await database.write(lambda tx: self._run(tx, fn, parts), verb="share")

        database = self._effects.database
        try:
            return await self._effects.insist(ask)
        except Exception as error:  # noqa: BLE001 — told to whose it is
            if len(parts) == 1:
                return [error]
        half = len(parts) // 2
        return [
            *await self._answers(fn, parts[:half]),
            *await self._answers(fn, parts[half:]),
        ]

    def _run(self, tx: db.Transaction, fn: Shares, parts: Sequence[Part]) -> list[Any]:
        wanted = store.hold_jobs(tx, self._effects.boot, {part.held for part in parts})
        ours = [part for part in parts if wanted.get(part.held)]
        answers = iter(self._made(tx, fn, ours) if ours else ())
        return [_left_out(part, wanted) or next(answers) for part in parts]

    def _made(self, tx: db.Transaction, fn: Shares, parts: Sequence[Part]) -> list[Any]:
        lent = self._effects.lent(tx, parts[0].spans)
        made = lent.lend(lambda inner: fn(inner, [part.about for part in parts]))
        return [answer for answer, _ in zip(made, parts, strict=True)]


def _left_out(part: Part, wanted: dict[Held, bool]) -> Exception | None:
    if part.held not in wanted:
        return LeaseLost(part.held.job)
    return None if wanted[part.held] else Unwanted(part.held.job)
