"""`retoma costs`, `budgets …`, `prices …`, `reuse …`: what it costs, and what is spared."""

from pathlib import Path
from typing import Annotated, Any

import typer

from retoma.console.options import LARGEST, AsJson, Database, Limit, group

budgets = group("How much may be spent before jobs wait.")
prices = group("What units cost, and what a dollar is worth.")
reuse = group("Results of steps that other jobs may use again.")


Batch = Annotated[int | None, typer.Option(metavar="ID", min=1, max=LARGEST)]
Provider = Annotated[str | None, typer.Option(metavar="NAME", help="Whom it is paid to.")]
Application = Annotated[
    str | None, typer.Option(metavar="NAME", help="For what its kinds say they work.")
]
Per = Annotated[str | None, typer.Option(metavar="day|month", help="Not of a batch.")]
Since = Annotated[
    str | None, typer.Option(metavar="DATE", help="From when on; without it from now.")
]


def costs(
    by: Annotated[
        str, typer.Option(metavar="provider|kind|application|day", help="Told by what.")
    ] = "provider",
    days: Annotated[int, typer.Option(min=1, max=1000, help="How many, with --by day.")] = 30,
    job: Annotated[int | None, typer.Option(metavar="ID", min=1, max=LARGEST)] = None,
    batch: Batch = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What was spent and saved: of everything, of one job or of one batch."""
    from retoma.cli.costs import costs as told

    told(database, json, by=by, days=days, job=job, batch=batch)


@budgets.command("list")
def budgets_list(
    after: Annotated[str, typer.Option(metavar="GATE", help="The next page.")] = "",
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Every budget: how much of it is spent in its period, and whether jobs wait for it."""
    from retoma.cli.budgets import list_

    list_(database, json, after=after, limit=limit)


@budgets.command("set")
def budgets_set(
    amount: Annotated[str, typer.Argument(metavar="AMOUNT", help="Such as '25 USD'.")],
    batch: Batch = None,
    provider: Provider = None,
    application: Application = None,
    per: Per = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Let so much be spent, from now on; who waits goes on if something is left."""
    from retoma.cli.budgets import set_

    whose = {"batch": batch, "provider": provider, "application": application, "per": per}
    set_(database, json, amount, **whose)


@budgets.command("remove")
def budgets_remove(
    batch: Batch = None,
    provider: Provider = None,
    application: Application = None,
    per: Per = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Bound it no more; who waits goes on."""
    from retoma.cli.budgets import remove

    whose = {"batch": batch, "provider": provider, "application": application, "per": per}
    remove(database, json, **whose)


@prices.command("list")
def prices_list(
    provider: Provider = None, database: Database = None, json: AsJson = False
) -> None:
    """Every price: the shipped ones, and those that were set, also for later."""
    from retoma.cli.prices import list_

    list_(database, json, provider=provider)


@prices.command("set")
def prices_set(
    provider: Annotated[str, typer.Argument(metavar="PROVIDER")],
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="Such as input_tokens.")],
    price: Annotated[str, typer.Argument(metavar="PRICE")],
    model: Annotated[str, typer.Option(help="Without it, of all its models.")] = "",
    currency: Annotated[str, typer.Option(metavar="USD|BRL")] = "USD",
    per: Annotated[int, typer.Option(min=1, help="For how many units.")] = 1,
    since: Since = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Say what a unit costs."""
    from retoma.cli.prices import set_

    how: dict[str, Any] = {"model": model, "currency": currency, "per": per, "since": since}
    set_(database, json, provider, unit, price, **how)


@prices.command("import")
def prices_import(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML: tables [[price]].")],
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Read a list of prices in, all of it or nothing."""
    from retoma.cli.prices import import_

    import_(database, json, file)


@prices.command("exchange")
def prices_exchange(
    rate: Annotated[str, typer.Argument(metavar="REAIS", help="That a dollar is.")],
    since: Since = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Say how many reais a dollar is."""
    from retoma.cli.prices import exchange

    exchange(database, json, rate, since=since)


@reuse.command("list")
def reuse_list(
    kind: Annotated[str | None, typer.Option()] = None,
    step: Annotated[str | None, typer.Option()] = None,
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What may be used again, newest first: of which step, made of what, by which job."""
    from retoma.cli.reuse import list_

    list_(database, json, kind=kind, step=step, limit=limit)


@reuse.command("forget")
def reuse_forget(
    kind: Annotated[str | None, typer.Option()] = None,
    step: Annotated[str | None, typer.Option()] = None,
    version: Annotated[int | None, typer.Option(min=1)] = None,
    key: Annotated[str | None, typer.Option(metavar="JSON")] = None,
    before: Annotated[str | None, typer.Option(metavar="DATE", help="Made before it.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All there are.")] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Have results made anew when they are next wanted; what jobs have read stays theirs."""
    from retoma.cli.reuse import forget

    which: dict[str, Any] = {"kind": kind, "step": step, "version": version, "key": key}
    forget(database, json, **which, before=before, everything=everything)
