"""`retoma pause`, `retoma resume`, `retoma pauses`"""

from typing import Annotated

import typer

from retoma.console.options import AsJson, Database, Name

What = Annotated[str, typer.Argument(metavar="WHAT", help="application, kind or queue.")]


def pause(
    what: What,
    name: Name,
    why: Annotated[str | None, typer.Option(help="The reason; it is shown and kept.")] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Claim nothing more of an application, a kind or a queue; what runs goes on to its end."""
    from retoma.cli.pauses import pause

    pause(database, json, what, name, why=why)


def resume(what: What, name: Name, database: Database = None, json: AsJson = False) -> None:
    """Let it go on where it stood."""
    from retoma.cli.pauses import resume

    resume(database, json, what, name)


def pauses(database: Database = None, json: AsJson = False) -> None:
    """What is paused, since when and by whom."""
    from retoma.cli.pauses import list_

    list_(database, json)
