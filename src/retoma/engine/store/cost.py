"""What was spent and saved: charges are appended with what they paid for, and added up later.

A reader adds both, so that every total is exact at every instant and no row is ever waited for.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any

from retoma.db import Transaction, moment
from retoma.engine.rules.cost import UNPRICED, Bill, Charge, Payer
from retoma.engine.rules.money import Currency, plain
from retoma.engine.rules.period import Per, span
from retoma.engine.rules.price import priced
from retoma.engine.store.price import prices_of
from retoma.engine.store.rows import now
from retoma.engine.store.verb import SQL

BITE = 5_000  # charges added up in one transaction
MOST_DAYS = 1_000  # back from today, of which one may ask
LAST = "\U0010ffff"  # comes after every name
LENGTHS = {Per.WHOLE: 0, Per.MONTH: 7, Per.DAY: 10}  # characters of a period's name


class Scope(StrEnum):
    """Whose account it is."""

    ALL = "all"
    JOB = "job"
    BATCH = "batch"
    KIND = "kind"
    APPLICATION = "application"
    PROVIDER = "provider"


class Sort(StrEnum):
    """What became of the money."""

    SPENT = "spent"
    SAVED = "saved"


# By the period too where somebody may ask, or set a budget.
ALWAYS = (Per.WHOLE,)
EVERY = (Per.WHOLE, Per.DAY, Per.MONTH)
PERIODS = {
    Scope.ALL: EVERY,
    Scope.JOB: ALWAYS,
    Scope.BATCH: ALWAYS,
    Scope.KIND: ALWAYS,
    Scope.APPLICATION: EVERY,
    Scope.PROVIDER: EVERY,
}


@dataclass(frozen=True, slots=True)
class Total:
    """What one account came to, of what was spent or of what was saved."""

    usd: Decimal = Decimal(0)  # of what was paid in dollars
    brl: Decimal = Decimal(0)  # of what was paid in reais
    units: dict[str, int] = field(default_factory=dict)
    unpriced: int = 0  # charges of which nobody knows the money

    @classmethod
    def of(cls, amounts: Counter[str]) -> "Total":
        units = dict(sorted((unit, n) for unit, n in amounts.items()))
        dollars, reais = (units.pop(each, 0) for each in Currency)
        return cls(
            Decimal(plain(dollars)),
            Decimal(plain(reais)),
            unpriced=units.pop(UNPRICED, 0),
            units=units,
        )

    @classmethod
    def sum(cls, totals: "Iterable[Total]") -> "Total":
        all_ = [*totals]
        units: Counter[str] = Counter()
        for each in all_:
            units.update(each.units)
        return cls(
            sum((each.usd for each in all_), Decimal(0)),
            sum((each.brl for each in all_), Decimal(0)),
            dict(sorted(units.items())),
            sum(each.unpriced for each in all_),
        )


@dataclass(frozen=True, slots=True)
class CostSeen:
    """One account in one period, for one provider and model of it."""

    name: str
    period: str
    provider: str
    model: str
    spent: Total
    saved: Total


def with_prices(tx: Transaction, bills: Iterable[Bill]) -> list[Bill]:
    """With the money of every charge that tells none, as the price list has it now."""
    wanted = list(bills)
    asked = {each.provider for bill in wanted for each in bill.spent if not each.known}
    prices = prices_of(tx, asked)
    return [
        bill.with_prices(
            (priced(each, prices) for each in bill.own),
            (priced(each, prices) for each in bill.others),
        )
        for bill in wanted
    ]


def add_charges(tx: Transaction, bills: Sequence[Bill]) -> None:
    """In the transaction of the saves and settlings that these are of, once those are accepted."""
    rows = [
        row
        for bill in bills
        for sort, charges in ((Sort.SPENT, bill.spent), (Sort.SAVED, bill.saved))
        for row in _rows(bill.payer, sort, charges)
    ]
    if rows:
        tx.run(SQL.add_charges, rows=json.dumps(rows))


def _rows(payer: Payer, sort: Sort, charges: Iterable[Charge]) -> Iterator[dict[str, Any]]:
    """One for each provider, model and unit."""
    amounts: Counter[tuple[str, str, str]] = Counter()
    for each in charges:
        for unit, n in each.amounts().items():
            amounts[each.provider, each.model, unit] += n
    for (provider, model, unit), amount in amounts.items():
        if amount:
            yield {
                "job": payer.job,
                "batch": payer.batch,
                "kind": payer.kind,
                "application": payer.application,
                "provider": provider,
                "model": model,
                "unit": unit,
                "sort": sort,
                "amount": amount,
            }


@dataclass(frozen=True, slots=True)
class Folded:
    """What one bite added up: how many charges, and whose."""

    charges: int
    payers: frozenset[tuple[int | None, str, str]]  # batch, application, provider


def fold_charges(tx: Transaction, zone: str) -> Folded:
    """Add a bite of charges to every account they belong to."""
    taken = tx.all(SQL.take_charges, bite=BITE)
    sums: Counter[tuple[str, ...]] = Counter()
    payers = set()
    for at, job, batch, kind, application, provider, model, unit, sort, amount in taken:
        names = {
            Scope.ALL: "",
            Scope.JOB: str(job),
            Scope.BATCH: None if batch is None else str(batch),
            Scope.KIND: kind,
            Scope.APPLICATION: application,
            Scope.PROVIDER: provider,
        }
        payers.add((batch, application, provider))
        when = moment(at)
        for scope, name in names.items():
            for per in PERIODS[scope] if name is not None else ():
                period = span(when, per, zone).name
                sums[scope, str(name), period, provider, model, unit, sort] += amount
    if sums:
        rows = [[*key, amount] for key, amount in sorted(sums.items())]
        tx.run(SQL.add_costs, rows=json.dumps(rows))
    return Folded(len(taken), frozenset(payers))


def list_costs(
    tx: Transaction,
    scope: Scope,
    zone: str,
    *,
    name: str | None = None,
    per: Per = Per.WHOLE,
    first: str = "",
    last: str = LAST,
) -> list[CostSeen]:
    """Each account of a sort, or one of them; whole, or by days or months from the first to the
    last of them."""
    rows = tx.all(
        SQL.list_costs,
        scope=scope,
        first_name=name or "",
        last_name=LAST if name is None else name,
        first=first,
        last=last,
        length=LENGTHS[per],
    )
    sums: dict[tuple[str, str, str, str], dict[str, Counter[str]]] = {}
    for row in rows:
        told, period, at, provider, model, unit, sort, amount = row
        if at is not None:
            period = span(moment(at), per, zone).name
        if told is None or name not in (None, told) or not first <= period <= last:
            continue
        account = sums.setdefault((told, period, provider, model), {})
        account.setdefault(sort, Counter())[unit] += int(amount)
    return [
        CostSeen(*key, *(Total.of(sums[key].get(sort, Counter())) for sort in Sort))
        for key in sorted(sums)
    ]


def list_days(
    tx: Transaction, scope: Scope, zone: str, *, name: str, days: int
) -> list[CostSeen]:
    """One account day by day, the last so many days, today's among them."""
    today = now(tx)
    first, last = (
        span(each, Per.DAY, zone).name for each in (today - timedelta(days=days - 1), today)
    )
    return list_costs(tx, scope, zone, name=name, per=Per.DAY, first=first, last=last)
