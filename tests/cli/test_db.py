"""`retoma db`: up, down, where it stands, and the same as text."""

import asyncio
import json

import apsw
import psycopg
import pytest

from retoma import db
from retoma.cli.db import script
from retoma.db import migrations
from tests.databases import EMPTY


@pytest.fixture
def _named(database_url, monkeypatch):
    monkeypatch.setenv("RETOMA_DATABASE_URL", database_url)


@EMPTY
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
    assert {} == up["applications"]


@EMPTY
@pytest.mark.usefixtures("_named")
def test_the_applications_that_are_taken_in_get_their_tables_too(verb, monkeypatch):
    monkeypatch.setenv("RETOMA_APPLICATIONS", "matches,quotes")
    before = json.loads(verb("db", "upgrade", "--json").out)["applications"]
    told = verb("db", "status")
    monkeypatch.setenv("RETOMA_APPLICATIONS", "matches,documents")
    after = json.loads(verb("db", "status", "--json").out)["applications"]

    assert {"matches", "quotes"} == set(before)
    assert all(each["applied"] == each["known"] != [] for each in before.values())
    assert "quotes: applied: 1\n" in told.out
    assert "nothing is missing" in told.out
    assert before["matches"] == after["matches"]
    assert ([], True) == (after["documents"]["applied"], bool(after["documents"]["pending"]))


@EMPTY
@pytest.mark.usefixtures("_named")
def test_the_tables_of_an_application_go_first_and_keep_what_they_hold(verb, tmp_path):
    table = tmp_path / "lote.csv"
    table.write_text("descricao\nMesa\n")
    verb("db", "upgrade")
    assert 0 == verb("quotes", "submit", str(table)).code
    refused = verb("db", "downgrade", "--application", "quotes", "--to", "0")
    unknown = verb("db", "downgrade", "--application", "nobody", "--to", "0", "--yes")
    assert (2, 2) == (refused.code, unknown.code)
    assert "quotes" in refused.err
    only = verb("db", "downgrade", "--application", "quotes", "--to", "0", "--yes", "--json")
    assert [] == json.loads(only.out)["applied"]
    again = verb("quotes", "submit", str(table), "--json")
    assert {"lote": 2, "quotes": 1, "left_out": 0} == json.loads(again.out)
    down = verb("db", "downgrade", "--to", "0", "--yes", "--json")
    assert [] == json.loads(down.out)["applied"]


def by_hand(url: str, text: str) -> None:
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(text)
        connection.close()
    else:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(text)


@EMPTY
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
