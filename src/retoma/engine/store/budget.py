"""Budgets: how much may be spent, and who waits once it is.

Whether one is spent is reckoned from what was charged, never from a mark. The mark is for its gate
alone: set by whoever finds it spent, over with the period, taken away when somebody sets the budget.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from retoma.codec import encode
from retoma.db import Transaction, moment
from retoma.engine.rules.cost import UNPRICED
from retoma.engine.rules.errors import NotFound
from retoma.engine.rules.money import Currency, Money, exchanged
from retoma.engine.rules.period import Per, Span, span
from retoma.engine.store import cost
from retoma.engine.store.cost import Scope
from retoma.engine.store.gates import BITE, put_back
from retoma.engine.store.price import exchange
from retoma.engine.store.rows import tell
from retoma.engine.store.verb import SQL
from retoma.words import say

GATE = "budget:"
WARN_AT = 80  # of a hundred
WHOLE = "whole"  # the one period of a budget that has none


def gate(scope: Scope, name: str, per: Per) -> str:
    """Behind which jobs wait while it is spent, and what people call it."""
    period = "" if per is Per.WHOLE else f":{per}"
    return f"{GATE}{scope}:{name}{period}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """So much for one batch; or for one application or provider in each day or month."""

    scope: Scope
    name: str
    per: Per
    money: Money

    @property
    def gate(self) -> str:
        return gate(self.scope, self.name, self.per)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSeen:
    """A budget, and how it stands in the period that is now."""

    budget: Budget
    period: Span
    spent: Money
    unconverted: Money | None  # in the other currency, while nobody has said what that is worth
    unpriced: int  # charges of which nobody knows the money: they are not in what is spent
    warned: bool
    shut: bool  # jobs wait for it

    @property
    def share(self) -> int:
        """Of a hundred."""
        return self.spent.nanos * 100 // self.budget.money.nanos

    @property
    def exhausted(self) -> bool:
        return self.spent.nanos >= self.budget.money.nanos

    @property
    def warning(self) -> bool:
        return self.share >= WARN_AT


def put_budget(tx: Transaction, budget: Budget, zone: str, *, actor: str) -> BudgetSeen:
    """Set it, or change it; whoever waits for it goes on if there is something left."""
    tx.run(
        SQL.put_budget,
        gate=budget.gate,
        scope=budget.scope,
        name=budget.name,
        per=budget.per,
        nanos=budget.money.nanos,
        currency=budget.money.currency,
    )
    tell(tx, actor=actor, verb="budget.set", subject=f"{budget.gate} {budget.money}")
    seen = get_budget(tx, budget.gate, zone)
    watch(tx, seen, actor=actor)
    if not seen.exhausted:
        put_back(tx, {budget.gate: BITE})
    return seen


def remove_budget(tx: Transaction, gate: str, *, actor: str) -> None:
    if tx.one(SQL.remove_budget, gate=gate) is None:
        raise NotFound(say("there is no budget {gate}", gate=gate))
    tell(tx, actor=actor, verb="budget.removed", subject=gate)
    put_back(tx, {gate: BITE})


def get_budget(tx: Transaction, gate: str, zone: str) -> BudgetSeen:
    found = look_up(tx, gate, zone)
    if found is None:
        raise NotFound(say("there is no budget {gate}", gate=gate))
    return found


def look_up(tx: Transaction, gate: str, zone: str) -> BudgetSeen | None:
    row = tx.one(SQL.get_budget, into=_BudgetRow, gate=gate)
    return None if row is None else _seen(tx, row, zone)


def list_budgets(
    tx: Transaction, zone: str, *, after: str = "", limit: int = 50
) -> list[BudgetSeen]:
    rows = tx.all(SQL.list_budgets, into=_BudgetRow, after=after, limit=limit)
    return [_seen(tx, row, zone) for row in rows]


def standing_budgets(tx: Transaction, zone: str, *, limit: int) -> list[BudgetSeen]:
    """Those of applications and providers: they are few, and come back with every period."""
    return [
        _seen(tx, row, zone)
        for row in tx.all(SQL.standing_budgets, into=_BudgetRow, limit=limit)
    ]


def budgets_of(
    tx: Transaction, batch: int | None, application: str, providers: Iterable[str], zone: str
) -> Iterator[BudgetSeen]:
    """Those that a call for these would spend."""
    met: set[str] = set()
    for provider in providers:
        named = "" if batch is None else str(batch)
        whose = {"batch": named, "application": application, "provider": provider}
        for row in tx.all(SQL.find_budgets, into=_BudgetRow, **whose):
            if row.gate not in met:
                met.add(row.gate)
                yield _seen(tx, row, zone)


def watch(tx: Transaction, seen: BudgetSeen, *, actor: str) -> None:
    """Warn of it, and shut its gate: each once in a period, and not if it was changed meanwhile."""
    budget, told = seen.budget, _told(seen)
    read = {"nanos": budget.money.nanos, "currency": budget.money.currency}
    named = {"gate": budget.gate, "period": seen.period.name or WHOLE}
    if seen.warning and tx.one(SQL.warn_budget, **named, **read) is not None:
        tell(tx, actor=actor, verb="budget.warned", subject=budget.gate, details=told)
    if seen.exhausted:
        until = seen.period.until
        if tx.one(SQL.shut_budget, until=until, **named, **read) is not None:
            tell(tx, actor=actor, verb="budget.exhausted", subject=budget.gate, details=told)


def fold_charges(tx: Transaction, zone: str, *, actor: str) -> int:
    """Add up what was charged since the last time, and look at every budget it is of; how many
    charges that were."""
    folded = cost.fold_charges(tx, zone)
    met: dict[str, BudgetSeen] = {}
    any_budget = bool(folded.payers) and tx.one(SQL.list_budgets, after="", limit=1) is not None
    for batch, application, provider in folded.payers if any_budget else ():
        for seen in budgets_of(tx, batch, application, [provider], zone):
            met[seen.budget.gate] = seen
    for _, seen in sorted(met.items()):
        watch(tx, seen, actor=actor)
    return folded.charges


class _BudgetRow(NamedTuple):
    """A budget as its row has it, and what time it is."""

    gate: str
    scope: Scope
    name: str
    per: Per
    nanos: int
    currency: Currency
    warned: str | None
    shut: object
    until: datetime | None
    now: datetime


def _seen(tx: Transaction, row: _BudgetRow, zone: str) -> BudgetSeen:
    money = Money(row.nanos, row.currency)
    budget = Budget(scope=row.scope, name=row.name, per=row.per, money=money)
    period = span(row.now, budget.per, zone)
    sums: Counter[str] = Counter()
    whose = {"scope": row.scope, "name": row.name, "period": period.name}
    for unit, at, amount in tx.all(SQL.budget_spent, **whose):
        if at is None or period.has(moment(at)):
            sums[unit] += int(amount)
    spent, unconverted = _in(tx, row.currency, sums)
    return BudgetSeen(
        budget=budget,
        period=period,
        spent=spent,
        unconverted=unconverted,
        unpriced=sums[UNPRICED],
        warned=row.warned == (period.name or WHOLE),
        shut=row.shut is not None and (row.until is None or row.until > row.now),
    )


def _in(tx: Transaction, own: Currency, sums: Counter[str]) -> tuple[Money, Money | None]:
    """All of it in the budget's own currency, and what of it cannot be told in that."""
    other = Currency.BRL if own is Currency.USD else Currency.USD
    if not sums[other]:
        return Money(sums[own], own), None
    rate = exchange(tx)
    if rate is None:
        return Money(sums[own], own), Money(sums[other], other)
    worth = exchanged(sums[other], other, own, rate.brl_per_usd)
    return Money(sums[own] + worth, own), None


def _told(seen: BudgetSeen) -> str:
    return encode(
        {
            "spent": str(seen.spent),
            "budget": str(seen.budget.money),
            "period": seen.period.name or WHOLE,
        }
    )
