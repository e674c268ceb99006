"""`retoma settings …`"""

from typing import Annotated

import typer

from retoma.console.options import AsJson, Database, Name, group

settings = group("Every setting and knob; those that change while processes run.")

App = Annotated[
    str | None,
    typer.Option(
        "--app",
        metavar="MODULE:APP",
        help="Also the knobs of this application; package.module:app.",
    ),
]


@settings.command("list")
def settings_list(
    all_: Annotated[
        bool, typer.Option("--all", help="Also those that need a restart.")
    ] = False,
    app: App = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """What each is, where that comes from, and who changed it."""
    from retoma.cli.knobs import list_

    list_(database, json, app, every=all_)


@settings.command("set")
def settings_set(
    name: Name,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="`none`: nothing at all.")],
    app: App = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Change a knob for all processes, which take it up while they run."""
    from retoma.cli.knobs import set_

    set_(database, json, app, name, value)


@settings.command("reset")
def settings_reset(
    name: Name, app: App = None, database: Database = None, json: AsJson = False
) -> None:
    """Its default holds again."""
    from retoma.cli.knobs import reset

    reset(database, json, app, name)
