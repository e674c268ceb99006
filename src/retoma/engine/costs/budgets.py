"""Before a step that pays: whether a budget it would spend is used up.

Asked afresh each time, so that only what was under way when a budget ran out may go beyond it. A job
that is told no is set aside, with all it has saved, and spends no attempt.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from retoma.db import Database, Transaction
from retoma.engine import store
from retoma.engine.rules.cost import Payer
from retoma.engine.rules.outcome import Aside, Unwound
from retoma.engine.store.budget import BudgetSeen
from retoma.engine.writing.coalescer import Together

MOST_KNOWN = 10_000  # steps of which is remembered whom they pay


class _Asking(NamedTuple):
    """Who would pay whom."""

    batch: int | None
    application: str
    providers: tuple[str, ...]


class Budgets:
    """What one boot knows of who pays whom."""

    def __init__(self, database: Database, boot: str, zone: str) -> None:
        self._database = database
        self._boot = boot
        self._zone = zone
        self._paid: dict[tuple[str, str], set[str]] = {}
        self._spent = Together(self._all_spent)

    def learn(self, kind: str, step: str, provider: str) -> None:
        """This step of this kind has paid."""
        self._paid.setdefault((kind, step), set()).add(provider)
        if len(self._paid) > MOST_KNOWN:  # steps are named by what they are for, now and then
            del self._paid[next(iter(self._paid))]

    def paid(self, kind: str, step: str) -> Iterable[str] | None:
        """Whom this step has paid before; None: nobody has seen it pay."""
        return self._paid.get((kind, step)) if self._paid else None

    async def afford(self, payer: Payer, providers: Iterable[str]) -> None:
        """Return if it may pay; else the job waits outside until there is money again."""
        asking = _Asking(payer.batch, payer.application, tuple(providers))
        spent = await self._spent.asked(asking)
        if spent is None:
            return
        await self._database.write(
            lambda tx: store.budget.watch(tx, spent, actor=self._boot), verb="shut_budget"
        )
        raise Unwound(Aside(spent.budget.gate))

    async def _all_spent(self, asking: Sequence[_Asking]) -> list[BudgetSeen | None]:
        """For each, a budget that is used up."""

        def look(tx: Transaction) -> dict[_Asking, BudgetSeen | None]:
            return {each: self._first_spent(tx, each) for each in set(asking)}

        found = await self._database.read(look)
        return [found[each] for each in asking]

    def _first_spent(self, tx: Transaction, asking: _Asking) -> BudgetSeen | None:
        met = store.budget.budgets_of(tx, *asking, self._zone)
        return next((seen for seen in met if seen.exhausted), None)
