"""Before a step that pays: whether a budget it would spend is used up.

Asked afresh each time, so that only what was under way when a budget ran out may go beyond it. A job
that is told no is set aside, with all it has saved, and spends no attempt.
"""

from collections.abc import Iterable

from retoma.db import Database
from retoma.engine import store
from retoma.engine.cost import Payer
from retoma.engine.outcome import Aside, Unwound


class Budgets:
    """What one boot knows of who pays whom."""

    def __init__(self, database: Database, boot: str, zone: str) -> None:
        self._database = database
        self._boot = boot
        self._zone = zone
        self._paid: dict[tuple[str, str], set[str]] = {}

    def learn(self, kind: str, step: str, provider: str) -> None:
        """This step of this kind has paid."""
        self._paid.setdefault((kind, step), set()).add(provider)

    def paid(self, kind: str, step: str) -> Iterable[str] | None:
        """Whom this step has paid before; None: nobody has seen it pay."""
        return self._paid.get((kind, step)) if self._paid else None

    async def afford(self, payer: Payer, providers: Iterable[str]) -> None:
        """Return if it may pay; else the job waits outside until there is money again."""
        asked = tuple(providers)
        spent = await self._database.read(
            lambda tx: next(
                (
                    seen
                    for seen in store.budget.budgets_of(
                        tx, payer.batch, payer.application, asked, self._zone
                    )
                    if seen.exhausted
                ),
                None,
            )
        )
        if spent is None:
            return
        await self._database.write(
            lambda tx: store.budget.watch(tx, spent, actor=self._boot), verb="shut_budget"
        )
        raise Unwound(Aside(spent.budget.gate))
