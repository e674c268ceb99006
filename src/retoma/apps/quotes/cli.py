"""`retoma quotes …`"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from retoma.console.options import LARGEST, AsJson, Budget, Database, Wait, group

quotes = group("Quotes: what products and vehicles cost, in lotes.")


class FileFormat(StrEnum):
    """As a lote is exported."""

    CSV = "csv"
    EXCEL = "excel"
    JSON = "json"
    XLSX = "xlsx"


Lote = Annotated[
    int | None, typer.Argument(metavar="LOTE", min=1, max=LARGEST, help="None: all of them.")
]
Quote = Annotated[int, typer.Argument(metavar="QUOTE", min=1, max=LARGEST)]
SomeQuote = Annotated[
    int | None,
    typer.Argument(metavar="QUOTE", min=1, max=LARGEST, help="None: whatever is stuck."),
]


@quotes.command("submit")
def submit(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="XLSX or CSV with the column descricao; - is stdin."
        ),
    ],
    name: Annotated[str | None, typer.Option(help="What the lote is called.")] = None,
    budget: Budget = None,
    only_good: Annotated[
        bool, typer.Option("--only-good", help="Leave out bad rows and submit the good ones.")
    ] = False,
    wait: Wait = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Submit a table as a lote, all of its rows or none; every bad row is named."""
    from retoma.apps.quotes.commands import submit

    submit(database, json, file, name=name, budget=budget, only_good=only_good, wait=wait)


@quotes.command("export")
def export(
    lote: Annotated[int, typer.Argument(metavar="LOTE", min=1, max=LARGEST)],
    format: Annotated[
        FileFormat, typer.Option(help="What to write; excel is CSV with decimal commas.")
    ] = FileFormat.CSV,
    out: Annotated[
        Path | None, typer.Option(help="Where to write it; without it, stdout.")
    ] = None,
    database: Database = None,
) -> None:
    """Write what came of a lote: prices, shops, links, FIPE codes, and why quotes failed."""
    from retoma.apps.quotes.commands import export

    export(database, lote, as_=format, out=out)


@quotes.command("status")
def status(lote: Lote = None, database: Database = None, json: AsJson = False) -> None:
    """How many are at work and where they stand; or how far a lote is."""
    from retoma.apps.quotes.commands import status

    status(database, json, lote)


@quotes.command("show")
def show(quote: Quote, database: Database = None, json: AsJson = False) -> None:
    """One quote: its checkpoint, what was found, what it costs."""
    from retoma.apps.quotes.commands import show

    show(database, json, quote)


@quotes.command("stuck")
def stuck(database: Database = None, json: AsJson = False) -> None:
    """Quotes without progress for ten minutes, or on a runner whose lease is over."""
    from retoma.apps.quotes.commands import stuck

    stuck(database, json)


@quotes.command("recover")
def recover(quote: SomeQuote = None, database: Database = None, json: AsJson = False) -> None:
    """Take back what the lost have left; or let one quote go on where it stopped."""
    from retoma.apps.quotes.commands import recover

    recover(database, json, quote)


@quotes.command("adopt")
def adopt(
    dsn: Annotated[
        str, typer.Argument(metavar="DSN", help="Its address, or env:NAME, file:/path.")
    ],
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it; else it is a dry run.")
    ] = False,
    schema: Annotated[str, typer.Option(help="Where its table is.")] = "public",
    table: Annotated[str, typer.Option(help="How it is called.")] = "quote_requests",
    description: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Which says what is to be quoted.")
    ] = None,
    pay_again: Annotated[
        bool,
        typer.Option("--pay-again", help="For what was paid and cannot be read; else left."),
    ] = False,
    source: Annotated[
        str | None, typer.Option(help="How it is called here; else by its address.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Take over a quote_requests of your own; first a dry run with counts."""
    from retoma.apps.quotes.commands import adopt as take

    how = {"schema": schema, "table": table, "source": source}
    take(database, json, dsn, apply=apply, described=description, pay_again=pay_again, **how)
