"""`retoma costs`: what was spent, and what was saved by steps that were kept or used again."""

from collections.abc import Awaitable, Callable
from decimal import Decimal
from enum import StrEnum

from retoma.console.kit import ask, clean, console, print_json, table
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.money import NANOS, plain
from retoma.engine.store.cost import CostSeen, Total
from retoma.library import Retoma
from retoma.words import say, speak


class By(StrEnum):
    """What the costs of everything are told by."""

    PROVIDER = "provider"
    KIND = "kind"
    APPLICATION = "application"
    DAY = "day"


def costs(
    database: str | None,
    as_json: bool,
    *,
    by: str,
    days: int,
    job: int | None,
    batch: int | None,
) -> None:
    found = ask(database, _question(_by(by), days, job, batch))
    if as_json:
        print_json(found)
        return
    if not found:
        console().print(speak("no costs"))
        return
    page = table(
        speak("of"),
        speak("provider"),
        speak("model"),
        "USD",
        "BRL",
        speak("units"),
        speak("without a price"),
        speak("saved USD"),
        speak("saved BRL"),
        speak("saved units"),
    )
    for each in found:
        page.add_row(
            clean(each.period or each.name or "—"),
            clean(each.provider or "—"),
            clean(each.model),
            *(_money(each.spent.usd), _money(each.spent.brl)),
            *(_units(each.spent), str(each.spent.unpriced or "")),
            *(_money(each.saved.usd), _money(each.saved.brl), _units(each.saved)),
        )
    console().print(page)


def _by(text: str) -> By:
    try:
        return By(text)
    except ValueError:
        raise BadInput(
            say("costs are told by {all}, not {text!r}", all=", ".join(By), text=text)
        ) from None


def _question(
    by: By, days: int, job: int | None, batch: int | None
) -> Callable[[Retoma], Awaitable[list[CostSeen]]]:
    if job is not None:
        return lambda app: app.costs.of_job(job)
    if batch is not None:
        return lambda app: app.costs.of_batch(batch)
    match by:
        case By.PROVIDER:
            return lambda app: app.costs.by_provider()
        case By.KIND:
            return lambda app: app.costs.by_kind()
        case By.APPLICATION:
            return lambda app: app.costs.by_application()
        case By.DAY:
            return lambda app: app.costs.by_day(days)


def _money(amount: Decimal) -> str:
    return plain(int(amount * NANOS)) if amount else ""


def _units(total: Total) -> str:
    return ", ".join(f"{unit} {n}" for unit, n in total.units.items())
