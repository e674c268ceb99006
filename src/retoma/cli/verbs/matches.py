"""`retoma matches …`"""

from typing import Annotated

import typer

from retoma.cli.options import AsJson, Database, group

matches = group("Matches: rounds that are scraped, each match whole or named.")


@matches.command("replay")
def replay(
    code: Annotated[
        str | None,
        typer.Option(metavar="CODE", help="Such as LAYOUT_CHANGED; else whatever was refused."),
    ] = None,
    league: Annotated[str | None, typer.Option(help="Only of this league.")] = None,
    layouts: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="By these parsers; else by the setting's."),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Do it; else it is a dry run.")
    ] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Read pages that were refused again, as they were kept; no request is made."""
    from retoma.cli.matches import replay

    replay(database, json, code, league=league, layouts=layouts, apply=apply)
