"""Money: what work costs, how much of it may be spent, what units cost, and results that are used again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.price import Price
from retoma.engine.store.budget import BudgetSeen
from retoma.engine.store.cost import MOST_DAYS, CostSeen, Total
from retoma.engine.store.price import Exchange
from retoma.engine.store.reuse import ReuseSeen
from retoma.library import Retoma
from retoma.settings import Settings
from retoma.words import say

__all__ = [
    "ACCOUNTS",
    "MOST_DAYS",
    "BudgetSeen",
    "BudgetShown",
    "CostSeen",
    "Exchange",
    "Prices",
    "Total",
]

ACCOUNTS = ("provider", "kind", "application", "day", "all")
LARGEST = 4 * 1024 * 1024  # bytes of a list; what is cut off there is no TOML any more


async def show_costs(
    app: Retoma,
    by: str = "provider",
    days: int = 30,
    job: int | None = None,
    batch: int | None = None,
) -> list[CostSeen]:
    """What was spent and saved: of everything, of one job or of one batch."""
    costs = app.costs
    if job is not None:
        return await costs.of_job(job)
    if batch is not None:
        return await costs.of_batch(batch)
    match by:
        case "all":
            return await costs.total()
        case "provider":
            return await costs.by_provider()
        case "kind":
            return await costs.by_kind()
        case "application":
            return await costs.by_application()
        case "day":
            return await costs.by_day(days)
        case _:
            known = ", ".join(ACCOUNTS[:-1])
            raise BadInput(say("costs are told by {all}, not {text!r}", all=known, text=by))


# — budgets —


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShown:
    """A budget, and how it stands in the period that is now."""

    gate: str = field(metadata={"description": "Behind which jobs wait while it is spent."})
    scope: str
    name: str
    per: str
    budget: str = field(metadata={"examples": ["25.00 USD"]})
    period: str
    until: datetime | None
    spent: str
    share: int = field(metadata={"description": "Of a hundred."})
    warning: bool
    exhausted: bool
    shut: bool = field(metadata={"description": "Jobs wait for it."})
    unconverted: str | None = field(
        metadata={"description": "Not counted: there is no exchange rate."}
    )
    unpriced: int


async def list_budgets(app: Retoma, after: str = "", limit: int = 50) -> list[BudgetShown]:
    """Every budget: how much of it is spent in its period, and whether jobs wait for it."""
    return [budget_shown(each) for each in await app.budgets.list(after=after, limit=limit)]


async def set_budget(
    app: Retoma,
    amount: str,
    batch: int | None = None,
    provider: str | None = None,
    application: str | None = None,
    per: str | None = None,
    *,
    actor: str,
) -> BudgetShown:
    """Let so much be spent, from now on; who waits goes on if something is left."""
    whose: dict[str, Any] = {"batch": batch, "provider": provider, "application": application}
    return budget_shown(await app.budgets.set(amount, **whose, per=per, actor=actor))


async def remove_budget(
    app: Retoma,
    batch: int | None = None,
    provider: str | None = None,
    application: str | None = None,
    per: str | None = None,
    *,
    actor: str,
) -> None:
    """Bound it no more; who waits goes on."""
    whose: dict[str, Any] = {"batch": batch, "provider": provider, "application": application}
    await app.budgets.remove(**whose, per=per, actor=actor)


def budget_shown(seen: BudgetSeen) -> BudgetShown:
    budget = seen.budget
    return BudgetShown(
        gate=budget.gate,
        scope=budget.scope,
        name=budget.name,
        per=budget.per,
        budget=str(budget.money),
        period=seen.period.name,
        until=seen.period.until,
        spent=str(seen.spent),
        share=seen.share,
        warning=seen.warning,
        exhausted=seen.exhausted,
        shut=seen.shut,
        unconverted=None if seen.unconverted is None else str(seen.unconverted),
        unpriced=seen.unpriced,
    )


# — prices —


@dataclass(frozen=True, slots=True)
class Prices:
    """What units cost, and what a dollar is worth."""

    prices: list[Price]
    exchange: Exchange | None


async def list_prices(app: Retoma, provider: str | None = None) -> Prices:
    """Every price: the shipped ones, and those that were set, also for later."""
    found = [each for each in await app.prices.list() if provider in (None, each.provider)]
    return Prices(found, await app.prices.exchange())


async def set_price(
    app: Retoma,
    chosen: Settings,
    provider: str,
    unit: str,
    price: str,
    model: str = "",
    currency: str = "USD",
    per: int = 1,
    since: str | datetime | None = None,
    *,
    actor: str,
) -> None:
    """Say what a unit costs."""
    await app.prices.set(
        provider,
        unit,
        price,
        model=model,
        currency=currency,
        per=per,
        since=_instant(since, chosen),
        actor=actor,
    )


async def import_prices(app: Retoma, file: Path, *, actor: str) -> int:
    """Read a list of prices in, all of it or nothing."""
    return await app.prices.read_in(_text(file), actor=actor)


async def set_exchange(
    app: Retoma,
    chosen: Settings,
    rate: str,
    since: str | datetime | None = None,
    *,
    actor: str,
) -> None:
    """Say how many reais a dollar is."""
    await app.prices.set_exchange(rate, since=_instant(since, chosen), actor=actor)


def _text(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(say("{file}: {error}", file=str(file), error=str(error))) from error


def _instant(given: str | datetime | None, chosen: Settings) -> datetime | None:
    """`2026-03-01`, or with a time; of our time zone unless it names one."""
    if given is None or isinstance(given, datetime):
        return given
    try:
        told = datetime.fromisoformat(given)
    except ValueError:
        raise BadInput(
            say("{text!r} is no date such as 2026-03-01 or 2026-03-01T08:30", text=given)
        ) from None
    return told if told.tzinfo else told.replace(tzinfo=ZoneInfo(chosen.timezone))


# — results that are used again —


async def list_reuse(
    app: Retoma, kind: str | None = None, step: str | None = None, limit: int = 50
) -> Sequence[ReuseSeen]:
    """What may be used again, newest first: of which step, made of what, by which job."""
    return await app.reuse.list(kind=kind, step=step, limit=limit)


async def forget_reuse(
    app: Retoma,
    chosen: Settings,
    kind: str | None = None,
    step: str | None = None,
    version: int | None = None,
    key: str | None = None,
    before: str | None = None,
    everything: bool = False,
    *,
    actor: str,
) -> int:
    """Have results made anew when they are next wanted; what jobs have read stays theirs."""
    which: dict[str, Any] = {"kind": kind, "step": step, "version": version}
    made_before = _instant(before, chosen)
    return await app.reuse.forget(
        **which, key=_read(key), before=made_before, everything=everything, actor=actor
    )


def _read(key: str | None) -> Any:
    if key is None:
        return None
    try:
        return json.loads(key)
    except ValueError:
        raise BadInput(
            say(
                "a key is given as JSON, such as '\"a text\"' or '{example}'",
                example='{"a": 1}',
            )
        ) from None
