"""`retoma writer-service`, `retoma writer profiles …`: what stores items by registered profiles."""

from typing import Annotated

import typer

from retoma.console.options import AsJson, Host, Name, Port, WithParent, group

writer = group("The writer: what it may be asked for.")
profiles = group("Into which tables, from where, with which headers.")
writer.add_typer(profiles, name="profiles")

Own = Annotated[
    str | None,
    typer.Option(
        "--database", metavar="URL", help="The writer's own; else sqlite:///writer.db here."
    ),
]


def writer_service(
    database: Own = None,
    host: Host = "127.0.0.1",
    port: Port = 8332,
    with_parent: WithParent = False,
) -> None:
    """Store items of JSON documents for an orchestrator, until told to stop."""
    from retoma.console.exits import stay_until_told

    stay_until_told()
    from retoma.cli.writer import run

    run(database, host, port, with_parent=with_parent)


@profiles.command("add")
def profiles_add(
    name: Name,
    target: Annotated[
        str,
        typer.Option(
            metavar="SECRET",
            help="The target's address, or where it lies: env:NAME, file:/path.",
        ),
    ],
    source: Annotated[
        list[str],
        typer.Option(
            metavar="ORIGIN", help="Where sources may be; may be given several times."
        ),
    ],
    table: Annotated[str, typer.Option(help="Where rows go.")] = "ads",
    schema: Annotated[str, typer.Option(help="Its schema; on SQLite only a word.")] = "public",
    conflict_key: Annotated[str, typer.Option(help="The column by which a row is one.")] = "id",
    json_path: Annotated[str, typer.Option(help="The field with the array.")] = "ads",
    rest: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Where unknown fields go, as JSON.")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SECRET", help="Sent to sources; may be given several times."
        ),
    ] = None,
    database: Own = None,
    json: AsJson = False,
) -> None:
    """Look at a table and let requests name it; one that is called the same is replaced."""
    from retoma.cli.writer import add
    from retoma.programs.writer import Wanted

    wanted = Wanted(
        name=name,
        table=table,
        schema=schema,
        conflict_key=conflict_key,
        json_path=json_path,
        origins=source,
        rest=rest,
    )
    add(database, json, wanted, target, header or [])


@profiles.command("list")
def profiles_list(database: Own = None, json: AsJson = False) -> None:
    """Every profile; of its secrets only that they are there."""
    from retoma.cli.writer import list_

    list_(database, json)


@profiles.command("check")
def profiles_check(name: Name, database: Own = None, json: AsJson = False) -> None:
    """Whether its table is still what it was when the profile was added."""
    from retoma.cli.writer import check

    check(database, json, name)


@profiles.command("remove")
def profiles_remove(name: Name, database: Own = None, json: AsJson = False) -> None:
    """No request may name it from now on; its secrets are forgotten."""
    from retoma.cli.writer import remove

    remove(database, json, name)
