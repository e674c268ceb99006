"""`retoma quotes …`"""

from typing import Annotated

import typer

from retoma.cli.options import LARGEST, AsJson, Budget, Database, Wait, group

quotes = group("Quotes: what products and vehicles cost, in lotes.")

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
        str, typer.Argument(metavar="FILE.csv", help="With the column descricao; - is stdin.")
    ],
    name: Annotated[str | None, typer.Option(help="What the lote is called.")] = None,
    budget: Budget = None,
    wait: Wait = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Submit a table as a lote, all of its lines or none."""
    from retoma.cli.quotes import submit

    submit(database, json, file, name=name, budget=budget, wait=wait)


@quotes.command("status")
def status(lote: Lote = None, database: Database = None, json: AsJson = False) -> None:
    """How many are at work and where they stand; or how far a lote is."""
    from retoma.cli.quotes import status

    status(database, json, lote)


@quotes.command("show")
def show(quote: Quote, database: Database = None, json: AsJson = False) -> None:
    """One quote: its checkpoint, what was found, what it costs."""
    from retoma.cli.quotes import show

    show(database, json, quote)


@quotes.command("stuck")
def stuck(database: Database = None, json: AsJson = False) -> None:
    """Quotes without progress for ten minutes, or on a runner whose lease is over."""
    from retoma.cli.quotes import stuck

    stuck(database, json)


@quotes.command("recover")
def recover(quote: SomeQuote = None, database: Database = None, json: AsJson = False) -> None:
    """Take back what the lost have left; or let one quote go on where it stopped."""
    from retoma.cli.quotes import recover

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
    from retoma.cli.quotes import adopt as take

    how = {"schema": schema, "table": table, "source": source}
    take(database, json, dsn, apply=apply, described=description, pay_again=pay_again, **how)
