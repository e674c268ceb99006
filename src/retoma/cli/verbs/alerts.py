"""`retoma alerts …`"""

from typing import Annotated

import typer

from retoma.console.options import AsJson, Before, Database, Id, Limit, group

alerts = group("What somebody should know of, and who knows.")


@alerts.command("list")
def alerts_list(
    all_: Annotated[bool, typer.Option("--all", help="Also those that are closed.")] = False,
    before: Before = None,
    limit: Limit = 50,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Alerts in force, newest first."""
    from retoma.cli.alerts import list_

    list_(database, json, in_force=not all_, before=before, limit=limit)


@alerts.command("acknowledge")
def alerts_acknowledge(id: Id, database: Database = None, json: AsJson = False) -> None:
    """Say that you know of it; the first who says so stays."""
    from retoma.cli.alerts import acknowledge

    acknowledge(database, json, id)


@alerts.command("silence")
def alerts_silence(
    id: Id,
    lasting: Annotated[str, typer.Option("--for", metavar="LENGTH", help="Such as 2h.")],
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Nobody is told of it for so long, nor of the next one of its rule and subject."""
    from retoma.cli.alerts import silence

    silence(database, json, id, lasting)
