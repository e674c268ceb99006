"""`retoma db …`"""

from typing import Annotated

import typer

from retoma.console.options import AsJson, Database, group

database = group("The schema of the database.")


@database.command("upgrade")
def db_upgrade(database: Database = None, json: AsJson = False) -> None:
    """Bring the schema to what retoma and the applications that are taken in need. Safe at any time."""
    from retoma.cli.db import upgrade

    upgrade(database, json)


@database.command("status")
def db_status(database: Database = None, json: AsJson = False) -> None:
    """Which migrations are applied, and which are not yet. Changes nothing."""
    from retoma.cli.db import status

    status(database, json)


@database.command("size")
def db_size(database: Database = None, json: AsJson = False) -> None:
    """What takes how much room, how long what stays, and what retention last deleted."""
    from retoma.cli.disk import size

    size(database, json)


@database.command("downgrade")
def db_downgrade(
    to: Annotated[int, typer.Option(min=0, help="The last migration to keep; 0: none.")],
    yes: Annotated[bool, typer.Option("--yes", help="Yes, drop what is above it.")] = False,
    application: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only its tables, such as quotes.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Undo migrations, newest first. What they hold is dropped: asks for --yes."""
    from retoma.cli.db import downgrade

    downgrade(database, json, to=to, yes=yes, application=application)


@database.command("sql")
def db_sql(
    dialect: Annotated[
        str | None, typer.Option(help="sqlite or postgres; else that of the database's URL.")
    ] = None,
    above: Annotated[int, typer.Option(min=0, help="Only migrations above this one.")] = 0,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Print what `upgrade` would run, for those who apply SQL by hand. Opens no database."""
    from retoma.cli.db import sql

    sql(database, json, dialect=dialect, above=above)


@database.command("grant")
def db_grant(
    role: Annotated[str, typer.Option(help="The program that logs in: web, runner or reader.")],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The role's name; else retoma_ROLE.")
    ] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Run it, in one transaction.")] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Print the SQL that gives a role of PostgreSQL the rights its program needs, and no others."""
    from retoma.cli.db import grant

    grant(database, json, program=role, name=name, apply=apply)
