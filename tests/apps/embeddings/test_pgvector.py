"""Search by the real pgvector, which the tests' wheel of PostgreSQL brings: the same hits as memory gives."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import psycopg
import pytest
from psycopg import sql

from retoma.apps.embeddings.providers import Provider
from retoma.apps.embeddings.steps import model_of
from retoma.apps.embeddings.vectors import Mode, Question, Searcher, pgvector
from retoma.apps.embeddings.vectors.candidates import Look, Nearest
from retoma.apps.embeddings.vectors.pgvector import PgVectorStore
from retoma.db import Database, adhoc
from retoma.db.migrations import ENGINE, Room
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import IllegalMove
from retoma.settings import Store
from retoma.toolkit.tools import Tools
from tests.apps.embeddings.aids import COLLECTION, Counting, House, house
from tests.databases import migrate
from tests.services.postgres import FAST, PostgresServer, in_a_wheel

ROOMS = (ENGINE, Room("embeddings", "retoma.apps.embeddings.migrations"))
FRUIT = ("banana", "laranja", "caju", "manga", "goiaba", "pitanga", "jaca", "umbu")
TEXTS = {f"{n:03}.txt": f"{FRUIT[n % 8]} {FRUIT[n // 8 % 8]} item{n:03}" for n in range(120)}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """From the wheel, whatever other PostgreSQL this machine has."""
    programs = in_a_wheel()
    assert programs is not None, "the wheel of requirements/postgres.txt brings PostgreSQL"
    with PostgresServer(FAST, programs=programs) as server:
        yield server


@pytest.fixture
def bare_url(server: PostgresServer) -> Iterator[str]:
    """A database that could have the extension, and has not."""
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS work WITH (FORCE)")
        connection.execute("CREATE DATABASE work")
        migrate(server.database_dsn("work"), ROOMS)
        yield server.database_dsn("work")
        connection.execute("DROP DATABASE work WITH (FORCE)")


@pytest.fixture
def url(bare_url: str) -> str:
    with psycopg.connect(bare_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector SCHEMA public")
    return bare_url


@dataclass
class Unasked:
    """A memory that must not be needed."""

    asked: int = 0
    answers: Any = None

    async def nearest(self, database: Database, look: Look) -> Nearest:
        self.asked += 1
        assert self.answers is not None, "memory was asked"
        found: Nearest = await self.answers.nearest(database, look)
        return found


def searchers(
    here: House, provider: Provider | None = None, *, must: bool = False
) -> tuple[Searcher, Searcher, Unasked]:
    """By pgvector, by memory, and the memory behind the first."""
    by, memory = here.searcher(), here.searcher()
    inner = memory._store
    while isinstance(inner, PgVectorStore):
        inner = inner._memory
    memory._store, behind = inner, Unasked(answers=inner)
    model = model_of(provider or here.provider)
    by._store = PgVectorStore(here.app.clock, model, behind, must=must)
    return by, memory, behind


async def asked(searcher: Searcher, text: str, **more: Any) -> list[tuple[str, float]]:
    found = await searcher.find(Question(collection=COLLECTION, text=text, **more))
    return [(hit.name, round(hit.score, 3)) for hit in found.hits]


async def test_pgvector_finds_what_memory_finds(url):
    async with house(url) as here:
        await here.add(*TEXTS.items())
        await here.drained()
        by, memory, behind = searchers(here)

        for text in ("banana caju", "item077", "goiaba pitanga"):
            for more in (
                {},
                {"most": 3},
                {"prefix": "01"},
                {"documents": [1, 5, 9]},
                {"least": 0.3, "most": 100},
            ):
                there, here_by = (
                    await asked(memory, text, **more),
                    await asked(by, text, **more),
                )
                # Of equally near ones each takes others.
                assert [score for _, score in there] == [score for _, score in here_by]
                last = there[-1][1] if there else 0
                assert _nearer(there, last) == _nearer(here_by, last)
        assert "077.txt" == (await asked(by, "item077", mode=Mode.HYBRID))[0][0]
        found = await by.find(Question(collection=COLLECTION, text="caju"))
        [(plan,)] = await _plan(here, by)

    assert (0, 120, 0) == (behind.asked, found.searched, found.left_out)
    assert "embeddings_near_1_" in plan
    assert "Index Scan" in plan


def _nearer(found: list[tuple[str, float]], than: float) -> set[tuple[str, float]]:
    return {each for each in found if each[1] > than}


async def _plan(here: House, by: Searcher) -> list[Any]:
    """How the server would look for what is nearest."""
    store = by._store
    assert isinstance(store, PgVectorStore)
    index = pgvector._Index(1, store._key, 384)
    [text] = pgvector._nearest(index).postgres
    query = "[" + ",".join(["0.05"] * 384) + "]"
    explained = text.sql.replace("%(query)s", f"'{query}'").replace("%(n)s", "5")
    database = await here.app.database()

    def read(tx: Any) -> list[Any]:
        tx.run(adhoc("SELECT 1", "SET LOCAL enable_seqscan = off"))
        rows = tx.all(adhoc("SELECT 1", f"EXPLAIN {explained}"))
        return [("\n".join(row[0] for row in rows),)]

    return await database.write(read, verb="test")


async def test_what_is_embedded_changed_or_deleted_meanwhile_is_as_it_is(url):
    async with house(url) as here:
        added = await here.add(*TEXTS.items())
        await here.drained()
        by, memory, _ = searchers(here)
        assert "077.txt" == (await asked(by, "item077"))[0][0]

        await here.remove(added.new[77])
        await here.add(("novo.txt", "abacaxi abacate"), ("005.txt", "abacaxi"))
        await here.drained()
        assert "077.txt" not in [name for name, _ in await asked(by, "item077", most=100)]
        assert {"novo.txt", "005.txt"} == {
            name for name, _ in await asked(by, "abacaxi", most=2)
        }
        await here.reembed(size=200, overlap=0)
        await here.drained()
        assert {*await asked(memory, "item009", most=100)} == {
            *await asked(by, "item009", most=100)
        }
        assert [(120,)] == await here.rows("SELECT count(*) FROM embeddings_near")


async def test_until_all_is_placed_memory_answers_and_nothing_is_missed(url, monkeypatch):
    monkeypatch.setattr(pgvector, "PLACED", 50)
    async with house(url) as here:
        await here.add(*TEXTS.items())
        await here.drained()
        by, memory, behind = searchers(here)

        answers = [await asked(by, "item077") for _ in range(4)]
        assert [(await asked(memory, "item077"))[0]] * 4 == [each[0] for each in answers]
        assert 2 == behind.asked  # 50, 100, then all


async def test_vectors_of_another_model_are_never_compared(url):
    async with house(url) as here:
        await here.add(*TEXTS.items())
        await here.drained()
        by, _, _ = searchers(here)
        await asked(by, "banana")

    other = Counting(model="other")
    async with house(url, other) as here:
        await here.app.write(_turn_to(other))
        await here.add(("novo.txt", "banana nova"))
        await here.drained()
        by, memory, behind = searchers(here, other)
        found = await by.find(Question(collection=COLLECTION, text="banana"))

        assert ["novo.txt"] == [hit.name for hit in found.hits]
        assert (1, 120, 0) == (found.searched, found.left_out, behind.asked)
        assert await memory.find(Question(collection=COLLECTION, text="banana")) == found


def _turn_to(provider: Counting) -> Any:
    from retoma.apps.embeddings import store

    return lambda tx: store.collections.change(
        tx, COLLECTION, model_of(provider), None, actor="ana"
    )


async def test_auto_takes_what_the_database_has_and_makes_no_extension(bare_url):
    async with house(bare_url) as here:
        await here.add(*TEXTS.items())
        await here.drained()
        by, memory, behind = searchers(here)

        assert (await asked(memory, "item077"))[0] == (await asked(by, "item077"))[0]
        assert 1 == behind.asked
        assert [] == await here.rows("SELECT 1 FROM pg_extension WHERE extname = 'vector'")


async def test_pgvector_makes_the_extension_where_it_may(bare_url):
    async with house(bare_url) as here:
        await here.add(*TEXTS.items())
        await here.drained()
        by, memory, behind = searchers(here, must=True)

        assert (await asked(memory, "item077"))[0] == (await asked(by, "item077"))[0]
        assert 0 == behind.asked


async def test_pgvector_says_what_it_lacks(server, bare_url):
    with psycopg.connect(bare_url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS plain")
        connection.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
        connection.execute("GRANT USAGE ON SCHEMA retoma TO plain")
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA retoma TO plain")
        connection.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA retoma TO plain")
        try:
            parts = psycopg.conninfo.conninfo_to_dict(bare_url)
            plain = f"postgresql://plain:plain@127.0.0.1:{parts['port']}/work"
            async with house(plain, clock=Clock()) as here:
                await here.add(("a.txt", "banana"))
                await here.drained()
                by, _, behind = searchers(here, must=True)
                with pytest.raises(IllegalMove, match="superuser run CREATE EXTENSION vector"):
                    await asked(by, "banana")

                connection.execute("CREATE EXTENSION vector SCHEMA public")
                by, _, behind = searchers(here, must=True)
                with pytest.raises(IllegalMove, match="as the owner of the tables"):
                    await asked(by, "banana")
                by, _, behind = searchers(here)
                assert "a.txt" == (await asked(by, "banana"))[0][0]
                assert 1 == behind.asked
        finally:
            connection.execute(sql.SQL("DROP OWNED BY plain"))
            connection.execute("DROP ROLE plain")


async def test_the_settings_say_where_vectors_are_compared(sqlite_url):
    async with house(sqlite_url) as here:
        await here.add(("a.txt", "banana"))
        await here.drained()
        tools: Tools = here.app.tools["embeddings"]

        def by(store: Store) -> Searcher:
            changed = tools.settings.model_copy(update={"embeddings_store": store})
            asked = Tools(here.app, tools.out, settings=changed)
            return Searcher(asked, here.provider, questions=here.searcher()._questions)

        assert "a.txt" == (await asked(by(Store.AUTO), "banana"))[0][0]
        assert "a.txt" == (await asked(by(Store.MEMORY), "banana"))[0][0]
        with pytest.raises(IllegalMove, match="the database is SQLite"):
            await asked(by(Store.PGVECTOR), "banana")


async def test_more_numbers_than_an_index_takes_are_compared_in_memory(url):
    async with house(url) as here:
        await here.add(("a.txt", "banana"))
        await here.drained()
        store = PgVectorStore(
            here.app.clock, replace(model_of(here.provider), dims=2_001), Unasked(), must=True
        )
        look = Look(1, np.zeros(2_001), 5)
        with pytest.raises(IllegalMove, match="2000 numbers at most, not 2001"):
            await store.nearest(await here.app.database(), look)
