"""`retoma keys …`, `people …`, `secrets …`: who may come in, and what they must not see."""

from typing import Annotated

import typer

from retoma.console.options import AsJson, Database, Key, Role, Who, group

keys = group("What programs come in with.")
people = group("Who may come in, and who is signed in.")
secrets = group("Where secrets lie, never what they are.")


@keys.command("create")
def keys_create(
    person: Who,
    role: Role = "viewer",
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    expires: Annotated[
        str | None, typer.Option(help="How long it is good: 90d. Else until it is revoked.")
    ] = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A key for a person, who is written down if new. Its token is shown this once."""
    from retoma.cli.keys import create

    create(database, json, person, role=role, label=label, expires=expires)


@keys.command("list")
def keys_list(
    every: Annotated[bool, typer.Option("--all", help="Those that were revoked too.")] = False,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Keys, newest first: whose, what they allow, when they were last used."""
    from retoma.cli.keys import list_

    list_(database, json, every=every)


@keys.command("revoke")
def keys_revoke(key: Key, database: Database = None, json: AsJson = False) -> None:
    """It opens nothing from now on."""
    from retoma.cli.keys import revoke

    revoke(database, json, key)


@keys.command("rotate")
def keys_rotate(
    key: Key,
    overlap: Annotated[str, typer.Option(help="How long the old one is good still.")] = "24h",
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A new key with the rights of an old one, which ends with the overlap."""
    from retoma.cli.keys import rotate

    rotate(database, json, key, overlap=overlap)


@people.command("list")
def people_list(database: Database = None, json: AsJson = False) -> None:
    """Everybody who may come in, by name."""
    from retoma.cli.people import list_

    list_(database, json)


@people.command("invite")
def people_invite(
    person: Who,
    role: Role = "viewer",
    expires: Annotated[str, typer.Option(help="How long the link is good.")] = "1h",
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A link that signs somebody in, once. Whoever is called so has this role from now on."""
    from retoma.cli.people import invite

    invite(database, json, person, role=role, expires=expires)


@people.command("remove")
def people_remove(person: Who, database: Database = None, json: AsJson = False) -> None:
    """Every key, link and session of theirs is over, at once."""
    from retoma.cli.people import remove

    remove(database, json, person)


@people.command("sessions")
def people_sessions(database: Database = None, json: AsJson = False) -> None:
    """Who is signed in with a browser, and since when."""
    from retoma.cli.people import sessions

    sessions(database, json)


@people.command("sign-out")
def people_sign_out(
    session: Annotated[str, typer.Argument(metavar="SESSION")],
    database: Database = None,
    json: AsJson = False,
) -> None:
    """A session is over, at once."""
    from retoma.cli.people import sign_out

    sign_out(database, json, session)


@secrets.command("list")
def secrets_list(database: Database = None, json: AsJson = False) -> None:
    """Which rows have a secret, where it lies, and who set it."""
    from retoma.cli.secrets import list_

    list_(database, json)


@secrets.command("rotate")
def secrets_rotate(database: Database = None, json: AsJson = False) -> None:
    """Seal every secret with a new key, then forget the old one. Interrupted, it goes on."""
    from retoma.cli.secrets import rotate

    rotate(database, json)
