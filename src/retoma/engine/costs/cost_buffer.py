"""What one attempt has spent and not yet written down.

What a step cost is written with the step. What a step cost that failed, and what the story spent
between its steps, is written with whatever the attempt writes next, its settling at the latest.
"""

from retoma.engine.rules.cost import Bill, Charge, Offer, Payer
from retoma.engine.rules.job import StepId


class Purse:
    """One for each attempt that spends or spares anything."""

    __slots__ = ("_by_step", "_others", "_payer", "_saved")

    def __init__(self, payer: Payer) -> None:
        self._payer = payer
        self._by_step: dict[StepId, list[Charge]] = {}
        self._others: list[Charge] = []
        self._saved: list[Charge] = []

    def spend(self, step: StepId | None, charge: Charge) -> None:
        own = self._others if step is None else self._by_step.setdefault(step, [])
        own.append(charge)

    def spare(self, charges: list[Charge]) -> None:
        """What would have been spent again, had its step not been kept."""
        self._saved += charges

    def failed(self, step: StepId) -> None:
        """The money of a step that came to nothing is spent all the same."""
        self._others += self._by_step.pop(step, [])

    def bill(self, step: StepId, *, offer: Offer | None, reused_from: int | None) -> Bill:
        """What goes with the saving of a step."""
        bill = Bill(
            payer=self._payer,
            own=tuple(self._by_step.pop(step, ())),
            others=tuple(self._others),
            saved=tuple(self._saved),
            offer=offer,
            reused_from=reused_from,
        )
        self._others, self._saved = [], []
        return bill

    def take_back(self, bill: Bill) -> None:
        """It was not written after all."""
        self._others += bill.spent
        self._saved += bill.saved

    def last_bill(self) -> Bill | None:
        """All that is left, of steps still under way too; None: nothing."""
        own = (each for charges in self._by_step.values() for each in charges)
        others = (*own, *self._others)
        if not others and not self._saved:
            return None
        bill = Bill(payer=self._payer, others=others, saved=tuple(self._saved))
        self._by_step, self._others, self._saved = {}, [], []
        return bill
