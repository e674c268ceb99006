"""`retoma costs`, `budgets`, `prices`, `reuse`: what work costs, and what is spared."""

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from retoma.cli.noun import Noun, Rows
from retoma.console.kit import at, clean, console, print_rows
from retoma.console.options import LARGEST
from retoma.words import say, speak

if TYPE_CHECKING:
    from decimal import Decimal

    from retoma.services.money import BudgetShown, Prices, Total

BATCH = Annotated[int | None, typer.Option(metavar="ID", min=1, max=LARGEST)]
PROVIDER = Annotated[str | None, typer.Option(metavar="NAME", help="Whom it is paid to.")]
APPLICATION = Annotated[
    str | None, typer.Option(metavar="NAME", help="For what its kinds say they work.")
]
PER = Annotated[str | None, typer.Option(metavar="day|month", help="Not of a batch.")]
SINCE = Annotated[
    str | None, typer.Option(metavar="DATE", help="From when on; without it from now.")
]
WHOSE = {"batch": BATCH, "provider": PROVIDER, "application": APPLICATION, "per": PER}


def money(amount: "Decimal") -> str:
    from retoma.engine.rules.money import NANOS, plain

    return plain(int(amount * NANOS)) if amount else ""


def units(total: "Total") -> str:
    return ", ".join(f"{unit} {n}" for unit, n in total.units.items())


costs = Noun("money")
costs.verb(
    "show_costs",
    "show",
    shows=Rows(
        (
            *(say("of"), say("provider"), say("model"), "USD", "BRL", say("units")),
            *(say("without a price"), say("saved USD"), say("saved BRL"), say("saved units")),
        ),
        lambda each: (
            *(each.period or each.name or "—", each.provider or "—", each.model),
            *(money(each.spent.usd), money(each.spent.brl)),
            *(units(each.spent), each.spent.unpriced or ""),
            *(money(each.saved.usd), money(each.saved.brl), units(each.saved)),
        ),
        none=say("no costs"),
    ),
    takes={
        "by": Annotated[
            str, typer.Option(metavar="provider|kind|application|day", help="Told by what.")
        ],
        "days": Annotated[int, typer.Option(min=1, max=1000, help="How many, with --by day.")],
        "job": BATCH,
        "batch": BATCH,
    },
)


def stands(seen: "BudgetShown") -> str:
    if seen.exhausted:
        said = speak("spent: jobs wait")
    elif seen.warning:
        said = speak("nearly spent")
    else:
        said = speak("open")
    if seen.unconverted is not None:
        said += speak("; {money} not counted: no exchange rate", money=seen.unconverted)
    if seen.unpriced:
        said += speak("; {n} charges not counted: no price", n=seen.unpriced)
    return said


budgets = Noun("money")
budgets.verb(
    "list_budgets",
    "list",
    shows=Rows(
        (
            *(say("budget"), say("period"), say("may be spent"), say("is spent")),
            *("%", say("stands"), say("until")),
        ),
        lambda each: (
            *(each.gate.removeprefix("budget:"), each.period, each.budget, each.spent),
            *(each.share, stands(each), each.until),
        ),
        none=say("no budgets"),
    ),
    takes={"after": Annotated[str, typer.Option(metavar="GATE", help="The next page.")]},
)
budgets.verb(
    "set_budget",
    "set",
    shows=lambda seen, _: speak(
        "{budget}: {money} may be spent, {spent} are",
        budget=clean(seen.gate),
        money=seen.budget,
        spent=seen.spent,
    ),
    takes={
        "amount": Annotated[str, typer.Argument(metavar="AMOUNT", help="Such as '25 USD'.")],
        **WHOSE,
    },
)
budgets.verb(
    "remove_budget",
    "remove",
    shows=lambda *_: speak("removed: who waited for it goes on"),
    document=lambda *_: {"removed": True},
    takes=WHOSE,
)


def show_prices(found: "Prices", _: SimpleNamespace) -> None:
    print_rows(
        (
            *(say("provider"), say("model"), say("unit"), say("price"), say("for")),
            *(say("since"), say("by")),
        ),
        (
            (
                *(each.provider, each.model or "*", each.unit),
                f"{each.amount:f} {each.currency.upper()}",
                *(each.per, each.since, each.by),
            )
            for each in found.prices
        ),
    )
    rate = found.exchange
    if rate is not None:
        console().print(
            speak(
                "1 USD is {rate} BRL since {since}",
                rate=f"{rate.brl_per_usd:f}",
                since=at(rate.since),
            )
        )


def named(text: str) -> Any:
    return Annotated[str, typer.Argument(metavar=text)]


prices = Noun("money")
prices.verb("list_prices", "list", shows=show_prices, takes={"provider": PROVIDER})
prices.verb(
    "set_price",
    "set",
    shows=lambda _, given: speak(
        "{units} cost {price} {currency} for {per}",
        units=clean(" ".join(filter(None, (given.provider, given.model, given.unit)))),
        price=given.price,
        currency=given.currency.upper(),
        per=given.per,
    ),
    document=lambda _, given: {
        name: getattr(given, name) for name in ("provider", "model", "unit", "price")
    },
    takes={
        "provider": named("PROVIDER"),
        "unit": Annotated[str, typer.Argument(metavar="UNIT", help="Such as input_tokens.")],
        "price": named("PRICE"),
        "model": "Without it, of all its models.",
        "currency": Annotated[str, typer.Option(metavar="USD|BRL")],
        "per": Annotated[int, typer.Option(min=1, help="For how many units.")],
        "since": SINCE,
    },
)
prices.verb(
    "import_prices",
    "import",
    shows=lambda n, _: speak("{n} prices hold now", n=n),
    document=lambda n, _: {"prices": n},
    takes={
        "file": Annotated[Path, typer.Argument(metavar="FILE", help="TOML: tables [[price]].")]
    },
)
prices.verb(
    "set_exchange",
    "exchange",
    shows=lambda _, given: speak("1 USD is {rate} BRL", rate=given.rate),
    document=lambda _, given: {"brl_per_usd": given.rate},
    takes={
        "rate": Annotated[str, typer.Argument(metavar="REAIS", help="That a dollar is.")],
        "since": SINCE,
    },
)

reuse = Noun("money")
reuse.verb(
    "list_reuse",
    "list",
    shows=Rows(
        (say("kind"), say("step"), say("key"), say("from job"), say("made"), say("cost")),
        lambda each: (
            *(each.kind, f"{each.step}@{each.version}", each.key, each.job, each.at),
            "; ".join(
                " ".join(f"{name}={value}" for name, value in one.items())
                for one in each.cost or ()
            ),
        ),
        none=say("nothing to use again"),
    ),
)
reuse.verb(
    "forget_reuse",
    "forget",
    shows=lambda n, _: speak("{n} results are forgotten; they are made anew when wanted", n=n),
    document=lambda n, _: {"forgotten": n},
    takes={
        "version": Annotated[int | None, typer.Option(min=1)],
        "key": Annotated[str | None, typer.Option(metavar="JSON")],
        "before": Annotated[str | None, typer.Option(metavar="DATE", help="Made before it.")],
        "everything": Annotated[bool, typer.Option("--all", help="All there are.")],
    },
)
