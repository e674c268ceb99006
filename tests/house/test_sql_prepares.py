"""Every statement can be prepared on its database, so none waits for its first use to fail."""

import re
from functools import partial

import pytest

from retoma import db
from retoma.db import migrations
from retoma.db.statements import Statement, Text, adhoc, statement
from tests.house.files import SOURCE
from tests.house.sections import list_sections

PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
TEMP_TABLE = re.compile(r"^CREATE TEMP TABLE", re.MULTILINE)  # later statements need it
TYPED = {"lease": 60.0}  # a minus before a parameter tells PostgreSQL nothing of its type


def verbs() -> list[tuple[str, str]]:
    """Return package and name of every statement."""
    return sorted({(section.package, section.name) for section in list_sections()})


def rooms() -> list[migrations.Room]:
    """Whoever has migrations beside the engine's."""
    packages = {path.parent for path in SOURCE.rglob("migrations/*.sql")}
    return [
        migrations.Room(
            folder.parent.name, ".".join(("retoma", *folder.relative_to(SOURCE).parts))
        )
        for folder in sorted(packages)
        if folder.parent.name != migrations.ENGINE.name
    ]


def explained(verb: Statement) -> Statement:
    """The same, only planned: nothing is read or written."""
    return Statement(verb.name, plans(verb.sqlite), plans(verb.postgres))


def plans(texts: tuple[Text, ...]) -> tuple[Text, ...]:
    return tuple(
        text if TEMP_TABLE.search(text.sql) else Text(f"EXPLAIN {text.sql}", answers=True)
        for text in texts
    )


def parameters(verb: Statement) -> dict[str, float | None]:
    names = PARAMETER.findall("\n".join(text.sql for text in verb.sqlite))
    names += re.findall(r"%\((\w+)\)s", "\n".join(text.sql for text in verb.postgres))
    return {name: TYPED.get(name) for name in names}


def ask(plan: Statement, params: dict[str, float | None], tx: db.Transaction) -> None:
    tx.all(plan, **params)


async def problems(database: db.Database, chosen: list[Statement]) -> dict[str, str]:
    found = {}
    for verb in chosen:
        try:
            plan, params = explained(verb), parameters(verb)
            await database.write(partial(ask, plan, params), verb="explain")
        except Exception as error:  # noqa: BLE001  # each driver has its own; all are the answer
            found[verb.name] = str(error)
    return found


async def test_every_statement_prepares_on_its_database(database_url):
    database = db.open(database_url)
    try:
        await migrations.upgrade(database)
        for room in rooms():
            await migrations.upgrade(database, room=room)

        assert {} == await problems(database, [statement(*verb) for verb in verbs()])
    finally:
        database.close()


@pytest.mark.parametrize(
    "planted", ["SELECT nothing FROM jobs", "SELEC 1", "UPDATE gone SET a = :a"]
)
async def test_a_statement_that_cannot_run_is_seen(database_url, planted):
    database = db.open(database_url)
    try:
        await migrations.upgrade(database)

        assert ["adhoc"] == list(await problems(database, [adhoc(planted)]))
    finally:
        database.close()
