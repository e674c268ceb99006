"""`retoma backup`, `retoma restore`, `retoma upgrade`"""

from pathlib import Path
from typing import Annotated

import typer

from retoma.console.options import AsJson, Database

File = Annotated[Path, typer.Argument(metavar="FILE", dir_okay=False)]


def backup(
    file: File,
    no_secret_key: Annotated[
        bool, typer.Option("--no-secret-key", help="Leave out what opens sealed secrets.")
    ] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Write database, evidence and secret key into one file, while everybody works."""
    from retoma.cli.backup import back_up

    back_up(database, json, file, secret_key=not no_secret_key)


def restore(file: File, database: Database = None, json: AsJson = False) -> None:
    """Fill an empty database from a backup. Runners of before can write nothing to it."""
    from retoma.cli.backup import restore as restored

    restored(database, json, file)


def upgrade(
    check: Annotated[
        bool,
        typer.Option("--check", help="Look, and change nothing; exit code 1 if there is any."),
    ] = False,
    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="MODULE:NAME",
            help="Where your Retoma is; nothing: the house's own. [env: RETOMA_APPLICATIONS]",
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="Instead of the one the app names."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Which jobs in flight the code that is installed now would not understand."""
    from retoma.cli.upgrade import check as examine

    examine(app, database, json, really=check)
