"""`retoma limits …`, `pools …`, `rates …`, `breakers …`: what work may have to wait for."""

from typing import Annotated

import typer

from retoma.console.options import AsJson, Database, Limit, Name, Thing, Things, Why, group

limits = group("How many jobs of a kind or key may run at once.")
pools = group("Shared exclusive things, and who holds them.")
rates = group("How often something may be called, by all runners together.")
breakers = group("What guards services that may be down.")


@limits.command("list")
def limits_list(
    after: Annotated[str, typer.Option(help="After this key: the next page.")] = "",
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Every limit by its key: how many may run, and how many do."""
    from retoma.cli.limits import list_

    list_(database, json, after=after, limit=limit)


@limits.command("set")
def limits_set(
    key: Annotated[str, typer.Argument(metavar="KEY")],
    cap: Annotated[
        int | None, typer.Option(min=1, help="How many at once; without it, as the code says.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Let so many run at once, over what the code says."""
    from retoma.cli.limits import set_

    set_(database, json, key, cap)


@pools.command("list")
def pools_list(database: Database = None, json: AsJson = False) -> None:
    """Every pool: how many things it has, how many are on, how many are held."""
    from retoma.cli.pools import list_

    list_(database, json)


@pools.command("show")
def pools_show(name: Name, database: Database = None, json: AsJson = False) -> None:
    """The things of a pool: who holds them, how they fare. Not what they are."""
    from retoma.cli.pools import show

    show(database, json, name)


@pools.command("on")
def pools_on(
    name: Name, things: Things, why: Why, database: Database = None, json: AsJson = False
) -> None:
    """Switch things of a pool on, all of them or none."""
    from retoma.cli.pools import switch

    switch(database, json, name, things, on=True, why=why)


@pools.command("off")
def pools_off(
    name: Name, things: Things, why: Why, database: Database = None, json: AsJson = False
) -> None:
    """Switch things of a pool off, all of them or none: nobody is given them."""
    from retoma.cli.pools import switch

    switch(database, json, name, things, on=False, why=why)


@pools.command("free")
def pools_free(
    name: Name, thing: Thing, database: Database = None, json: AsJson = False
) -> None:
    """Say that the use of a thing has ended, whoever holds it."""
    from retoma.cli.pools import free

    free(database, json, name, thing)


@rates.command("list")
def rates_list(database: Database = None, json: AsJson = False) -> None:
    """Every rate by its key."""
    from retoma.cli.rates import list_

    list_(database, json)


@rates.command("set")
def rates_set(
    key: Annotated[str, typer.Argument(metavar="KEY")],
    per_second: Annotated[float, typer.Argument(metavar="PER_SECOND")],
    burst: Annotated[
        float | None, typer.Option(help="How many at once; without it, a second's worth.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Let so many calls a second through, from now on."""
    from retoma.cli.rates import set_

    set_(database, json, key, per_second, burst)


@breakers.command("list")
def breakers_list(database: Database = None, json: AsJson = False) -> None:
    """Every breaker: open or closed, since when, why, when it is tried next."""
    from retoma.cli.breakers import list_

    list_(database, json)


@breakers.command("open")
def breakers_open(
    name: Name, why: Why, database: Database = None, json: AsJson = False
) -> None:
    """Let nobody through; one job tries it after its rest, and closes it if that works."""
    from retoma.cli.breakers import open_

    open_(database, json, name, why=why)


@breakers.command("close")
def breakers_close(name: Name, database: Database = None, json: AsJson = False) -> None:
    """Let all through again, now."""
    from retoma.cli.breakers import close

    close(database, json, name)
