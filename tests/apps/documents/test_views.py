"""The document's tables are read by whoever opens the file: no function of ours is needed."""

import sqlite3
from pathlib import Path

import pytest

from retoma.db import migrations
from retoma.testing import FakeClock
from tests.apps.documents.aids import house, paper

ROOM = migrations.Room("documents", "retoma.apps.documents.migrations")
VIEWS = ("execucoes_classificacao", "resultados_classificacao")
STUCK = (
    "UPDATE executions SET moved_at = moved_at - 400000000 WHERE name = 'parada'",
    "UPDATE jobs SET epoch = 1, run_at = run_at - 400000000, turn = 0 WHERE state = 'waiting'",
)


@pytest.fixture
def path(sqlite_url: str) -> Path:
    return Path(sqlite_url.removeprefix("sqlite:///"))


async def test_plain_sqlite_reads_every_column_of_the_views_and_the_same_status(
    sqlite_url, path
):
    """Ten minutes after the last movement it says TRAVADO, by the clock that every SQLite has."""
    async with house(sqlite_url) as there:
        papers = [paper("A-1"), paper("A-2", "corrupt.pdf")]
        await there.execution(papers)
        await there.drained()
        stuck = await there.execution([paper("B-1")], name="parada")
        for sql in STUCK:
            await there.change(sql)
        expected = await there.rows(
            "SELECT id, status FROM execucoes_classificacao ORDER BY id"
        )
        assert "TRAVADO" == dict(expected)[stuck]

    with sqlite3.connect(path) as plain:
        told = plain.execute("SELECT id, status FROM execucoes_classificacao ORDER BY id")
        assert [tuple(row) for row in expected] == told.fetchall()
        for view in VIEWS:
            assert plain.execute(f"SELECT * FROM {view}").fetchall()  # noqa: S608
    plain.close()


async def test_our_connections_answer_by_the_clock_of_the_database(sqlite_url):
    """A view that asks what every SQLite has travels in time with the tests."""
    async with house(sqlite_url) as there:
        clock = there.app.clock
        assert isinstance(clock, FakeClock)
        asked = "SELECT clock(), CAST((julianday(CURRENT_TIMESTAMP) - 2440587.5) * 86400000 AS integer)"
        clock.advance(86_400)
        [(ours, plain)] = await there.rows(asked)

        assert abs(ours // 1000 - plain) < 1_000


async def test_the_schema_goes_and_comes_back_and_what_people_said_stays(database_url):
    """E25: plain tables are left of the views, also where it goes and comes back twice."""
    async with house(database_url) as there:
        await there.execution([paper("A-1")])
        await there.drained()
        database = await there.app.database()
        for _ in range(2):
            await migrations.downgrade(database, to=0, room=ROOM)
            assert [] == await there.rows("SELECT label FROM document_reviews_kept")
            await migrations.upgrade(database, room=ROOM)
        assert [] == await there.rows("SELECT bloqueada_em FROM execucoes_classificacao")
