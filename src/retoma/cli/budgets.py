"""`retoma budgets`: how much may be spent before jobs wait, and how much of it is."""

from typing import Any

from retoma.console.kit import ACTOR, ask, at, clean, console, print_json, table
from retoma.engine.store.budget import BudgetSeen
from retoma.words import speak


def list_(database: str | None, as_json: bool, *, after: str, limit: int) -> None:
    found = ask(database, lambda app: app.budgets.list(after=after, limit=limit))
    if as_json:
        print_json([_document(each) for each in found])
        return
    if not found:
        console().print(speak("no budgets"))
        return
    page = table(
        speak("budget"),
        speak("period"),
        speak("may be spent"),
        speak("is spent"),
        "%",
        speak("stands"),
        speak("until"),
    )
    for each in found:
        page.add_row(
            clean(each.budget.gate.removeprefix("budget:")),
            each.period.name,
            str(each.budget.money),
            str(each.spent),
            str(each.share),
            _stands(each),
            at(each.period.until),
        )
    console().print(page)


def _stands(seen: BudgetSeen) -> str:
    if seen.exhausted:
        stands = speak("spent: jobs wait")
    elif seen.warning:
        stands = speak("nearly spent")
    else:
        stands = speak("open")
    if seen.unconverted is not None:
        stands += speak("; {money} not counted: no exchange rate", money=str(seen.unconverted))
    if seen.unpriced:
        stands += speak("; {n} charges not counted: no price", n=seen.unpriced)
    return stands


def set_(database: str | None, as_json: bool, amount: str, **whose: Any) -> None:
    seen = ask(database, lambda app: app.budgets.set(amount, **whose, actor=ACTOR))
    if as_json:
        print_json(_document(seen))
        return
    print(
        speak(
            "{budget}: {money} may be spent, {spent} are",
            budget=clean(seen.budget.gate),
            money=str(seen.budget.money),
            spent=str(seen.spent),
        )
    )


def remove(database: str | None, as_json: bool, **whose: Any) -> None:
    ask(database, lambda app: app.budgets.remove(**whose, actor=ACTOR))
    if as_json:
        print_json({"removed": True})
    else:
        print(speak("removed: who waited for it goes on"))


def _document(seen: BudgetSeen) -> dict[str, Any]:
    return {
        "gate": seen.budget.gate,
        "scope": seen.budget.scope,
        "name": seen.budget.name,
        "per": seen.budget.per,
        "budget": str(seen.budget.money),
        "period": seen.period.name,
        "until": seen.period.until,
        "spent": str(seen.spent),
        "share": seen.share,
        "warning": seen.warning,
        "exhausted": seen.exhausted,
        "shut": seen.shut,
        "unconverted": None if seen.unconverted is None else str(seen.unconverted),
        "unpriced": seen.unpriced,
    }
