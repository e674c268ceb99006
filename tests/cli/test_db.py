"""`retoma db`: up, down, where it stands, and the same as text."""

import asyncio
import json

import apsw
import psycopg
import pytest

from retoma import db
from retoma.cli.db import script
from retoma.db import migrations


@pytest.fixture
def _named(database_url, monkeypatch):
    monkeypatch.setenv("RETOMA_DATABASE_URL", database_url)


@pytest.mark.usefixtures("_named")
def test_up_and_down_and_where_it_stands(verb):
    up = json.loads(verb("db", "upgrade", "--json").out)
    again = verb("db", "upgrade")
    refused = verb("db", "downgrade", "--to", "0")
    still = json.loads(verb("db", "status", "--json").out)
    down = json.loads(verb("db", "downgrade", "--to", "0", "--yes", "--json").out)

    assert up["known"] == up["applied"]
    assert (0, True) == (again.code, "nothing is missing" in again.out)
    assert 2 == refused.code
    assert "--yes" in refused.err
    assert up == still
    assert ([], up["known"]) == (down["applied"], down["pending"])


def by_hand(url: str, text: str) -> None:
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(text)
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(text)


def test_the_sql_applied_by_hand_is_an_upgrade(database_url, verb):
    dialect = "sqlite" if database_url.startswith("sqlite") else "postgres"
    text = verb("db", "sql", "--dialect", dialect).out
    by_hand(database_url, text)

    said = json.loads(verb("db", "status", "--json", "--database", database_url).out)

    assert [] == said["pending"]
    assert said["known"] == said["applied"]
    assert script(dialect, 0) == text
    assert "" == script(dialect, max(said["known"]))


def test_an_unknown_dialect_is_refused(url, verb):
    said = verb("db", "sql", "--dialect", "oracle")

    assert 2 == said.code
    assert "sqlite, postgres" in said.err


@pytest.mark.usefixtures("_named")
def test_a_newer_schema_is_refused_with_what_to_do(database_url, verb):
    verb("db", "upgrade")
    newer = db.adhoc("UPDATE retoma_migrations SET number = 9999 WHERE number = 1")

    async def pretend() -> None:
        database = db.open(database_url)
        await database.write(lambda tx: tx.run(newer), verb="pretend")
        database.close()

    asyncio.run(pretend())

    for words in (("db", "status"), ("db", "upgrade"), ("jobs", "list")):
        said = verb(*words)
        assert 1 == said.code
        assert "9999" in said.err
        assert "newer retoma" in said.err
        assert 1 == len(said.err.splitlines())


def test_a_server_that_is_away_is_said_at_once_and_without_the_password(url, verb):
    away = "postgresql://ana:geheim@127.0.0.1:9/retoma"

    for words in (("db", "status"), ("jobs", "list")):
        said = verb(*words, "--database", away)
        assert 69 == said.code
        assert 1 == len(said.err.splitlines())
        assert "geheim" not in said.err


def test_a_password_is_never_shown(url, verb):
    said = verb("db", "downgrade", "--to", "0", "--database", "postgresql://a:geheim@there/x")

    assert 2 == said.code
    assert "geheim" not in said.err
    assert "postgresql://***@there" in said.err


def test_a_file_of_somebody_else_is_refused(url, tmp_path, verb):
    other = apsw.Connection(str(tmp_path / "work.db"))
    other.execute("CREATE TABLE diary (day text)")
    other.close()

    said = verb("db", "upgrade")

    assert 1 == said.code
    assert "not retoma's" in said.err


def test_status_knows_every_migration(url, verb):
    verb("db", "upgrade")

    known = [each.number for each in migrations.migrations("sqlite")]
    assert known == json.loads(verb("db", "status", "--json").out)["known"]
