"""`retoma db`: the schema, up and down, or as text for those who apply it by hand."""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from retoma import db, settings
from retoma.bootstrap import rooms_of
from retoma.console.exits import Exit, Stop
from retoma.console.kit import must_exist, print_json, reachable, shown, url_of
from retoma.db import Database, Transaction, migrations
from retoma.db.migrations import Migration, Room, Status
from retoma.db.statements import DIALECTS, Text
from retoma.engine.rules.errors import BadInput
from retoma.grants import Program, grants, read_schema
from retoma.library import room_of
from retoma.manifest import APPLICATIONS, application_of, installed
from retoma.words import say, speak

Stands = dict[str, Status]  # by room; the first is what was asked about


def upgrade(database: str | None, as_json: bool) -> None:
    url = url_of(database)
    _say(url, as_json, _on(url, lambda opened: _each(opened, migrations.upgrade)))


def status(database: str | None, as_json: bool) -> None:
    url = url_of(database)
    must_exist(url)
    _say(url, as_json, _on(url, lambda opened: _each(opened, migrations.status)))


async def _each(opened: Database, verb: Callable[..., Awaitable[Status]]) -> "Stands":
    """The engine first: the tables of the applications that the settings name stand on its own."""
    rooms = rooms_of(settings.read())
    return {room.name: await verb(opened, room=room) for room in rooms}


def downgrade(
    database: str | None, as_json: bool, *, to: int, yes: bool, application: str | None
) -> None:
    url = url_of(database)
    must_exist(url)
    room = None if application is None else _room(application)
    if not yes and room is not None:
        raise Stop(
            Exit.USAGE,
            say(
                "this takes the tables of {name} above migration {to} out of {url}; nothing was"
                " changed. Say --yes if that is meant",
                name=room.name,
                to=to,
                url=shown(url),
            ),
        )
    if not yes:
        raise Stop(
            Exit.USAGE,
            say(
                "this drops everything above migration {to} in {url}, jobs included; nothing was"
                " changed. Say --yes if that is meant",
                to=to,
                url=shown(url),
            ),
        )
    _say(url, as_json, _on(url, lambda opened: _down(opened, to, room)))


async def _down(opened: Database, to: int, room: Room | None) -> "Stands":
    """Where nothing of the engine stays, nothing can that stands on it: applications go first."""
    if room is not None:
        return {room.name: await migrations.downgrade(opened, to=to, room=room)}
    for name in (*APPLICATIONS, *installed()) if to == 0 else ():
        if (await migrations.status(opened, above := _room(name))).applied:
            await migrations.downgrade(opened, to=0, room=above)
    return {migrations.ENGINE.name: await migrations.downgrade(opened, to=to)}


def _room(application: str) -> Room:
    found = application_of(application)
    if found.migrations is None:
        raise BadInput(say("{name} has no tables", name=application))
    return room_of(found, settings.read().public_views)


def sql(database: str | None, as_json: bool, *, dialect: str | None, above: int) -> None:
    wanted = dialect or _dialect(url_of(database))
    if wanted not in DIALECTS:
        raise BadInput(
            say(
                "--dialect is one of {known}, not {wanted!r}",
                known=", ".join(DIALECTS),
                wanted=wanted,
            )
        )
    text = script(wanted, above)
    if as_json:
        print_json({"dialect": wanted, "above": above, "sql": text})
    else:
        print(text, end="")


def grant(
    database: str | None, as_json: bool, *, program: str, name: str | None, apply: bool
) -> None:
    """The least rights of a program, for the tables that are in the database now."""
    if program not in list(Program):
        raise BadInput(
            say(
                "--role is one of {known}, not {wanted!r}",
                known=", ".join(Program),
                wanted=program,
            )
        )
    url = url_of(database)
    if _dialect(url) == "sqlite":
        raise Stop(
            Exit.USAGE,
            say(
                "{url} is SQLite, which has no roles: its rights are those of the file; nothing"
                " was changed",
                url=shown(url),
            ),
        )
    role = name or f"retoma_{program}"
    statements = asyncio.run(_grant(url, Program(program), role, apply=apply))
    text = "\n".join(["BEGIN;", *(f"{each};" for each in statements), "COMMIT;"])
    if as_json:
        print_json({"program": program, "role": role, "applied": apply, "sql": text})
    elif apply:
        print(speak("the role {role} has the rights of {program}", role=role, program=program))
    else:
        print(text)


async def _grant(url: str, program: Program, role: str, *, apply: bool) -> list[str]:
    await reachable(db.open(url))
    opened = db.open(url)
    try:
        if (await migrations.status(opened)).pending:
            raise Stop(
                Exit.USAGE,
                say(
                    "bring the schema up to date first: `retoma db upgrade`; nothing was changed"
                ),
            )
        if not apply:
            return grants(program, role, await opened.read(read_schema))

        def give(tx: Transaction) -> list[str]:
            statements = grants(program, role, read_schema(tx))
            for each in statements:
                tx.run(_plain(each))
            return statements

        return await opened.write(give, verb="grant")
    finally:
        opened.close()


def _plain(sql: str) -> db.Statement:
    """One statement for PostgreSQL that takes no parameters and gives no rows."""
    return db.Statement("grant", (), (Text(sql.replace("%", "%%"), answers=False),))


def script(dialect: str, above: int) -> str:
    """What `upgrade` runs on a database that is at migration `above`."""
    chosen = [each for each in migrations.migrations(dialect) if each.number > above]
    return "\n".join(_transaction(dialect, each) for each in chosen)


def _transaction(dialect: str, migration: Migration) -> str:
    begin = ["BEGIN;", _text(dialect, migrations.LOCK)]
    if dialect == "postgres":
        begin += [_text(dialect, migrations.CREATE_SCHEMA)]
        begin += ["SET LOCAL search_path TO retoma, public;"]
    made = (migrations.CREATE_TABLES, migrations.NAME_DATABASE)
    return "\n\n".join(
        [
            f"-- migration {migration.number}: {migration.name}",
            *begin,
            *(_text(dialect, each) for each in made),
            migration.up.strip(),
            _record(dialect, migration),
            "COMMIT;\n",
        ]
    )


def _text(dialect: str, statement: db.Statement) -> str:
    return "\n\n".join(f"{text.sql.strip()};" for text in getattr(statement, dialect))


def _record(dialect: str, migration: Migration) -> str:
    # The clock of an embedded database is ours; whoever applies this by hand has only its own.
    now = (
        "CAST(strftime('%s', 'now') AS integer) * 1000000"
        if dialect == "sqlite"
        else "clock_timestamp()"
    )
    values = f"'{migrations.ENGINE.name}', {migration.number}, '{migration.name}'"
    return f"INSERT INTO retoma_migrations VALUES ({values}, '{migration.checksum}', {now});"  # noqa: S608 — all ours


def _on(url: str, verb: Callable[[Database], Awaitable["Stands"]]) -> "Stands":
    async def done() -> Stands:
        await reachable(db.open(url))
        opened = db.open(url)
        try:
            return await verb(opened)
        finally:
            opened.close()

    return asyncio.run(done())


def _say(url: str, as_json: bool, stands: "Stands") -> None:
    first, *others = stands.items()
    if as_json:
        told = {"database": shown(url), "dialect": _dialect(url), **_numbers(first[1])}
        print_json({**told, "applications": {name: _numbers(each) for name, each in others}})
        return
    for name, status in ((shown(url), first[1]), *others):
        applied = _listed(status.applied)
        print(speak("{url}: applied: {numbers}", url=name, numbers=applied))
        if status.pending:
            pending = _listed(status.pending)
            print(speak("not yet applied: {numbers}: `retoma db upgrade`", numbers=pending))
    if not any(status.pending for status in stands.values()):
        print(speak("nothing is missing"))


def _numbers(status: Status) -> dict[str, list[int]]:
    numbers = {
        "applied": status.applied,
        "pending": status.pending,
        "known": status.known,
    }
    return {name: list(each) for name, each in numbers.items()}


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers)) or speak("none")


def _dialect(url: str) -> str:
    return "sqlite" if urlsplit(url).scheme == "sqlite" else "postgres"
