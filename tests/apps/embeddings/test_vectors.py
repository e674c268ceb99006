"""Search: the nearest first, what is new at once, what is gone never, and no more memory than was said."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from retoma import Retoma
from retoma.apps.embeddings.providers import NGrams, Provider
from retoma.apps.embeddings.vectors import Found, Matrix, Near, Question, Searcher, spans_of
from retoma.apps.embeddings.vectors.memory import MemoryStore
from retoma.apps.embeddings.vectors.spans import pieces_of
from retoma.db import Database, Statement, adhoc
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.outbound import Outbound
from retoma.settings import Settings, Store
from retoma.testing import FakeClock
from retoma.toolkit.tools import Tools
from tests.apps.embeddings.corpus import add_collection, add_documents, remove_document
from tests.engine.aids import change

TEXTS = {
    "leis/multa.txt": "A multa de trânsito foi aplicada ao motorista do caminhão.",
    "leis/recurso.txt": "O recurso contra a multa deve ser entregue em trinta dias.",
    "cozinha/bolo.txt": "A receita do bolo de cenoura leva ovos, farinha e açúcar.",
}
RENUMBER = adhoc(
    "UPDATE embeddings_chunks SET document = :old WHERE document = :new;\n\n"
    "UPDATE embeddings_documents SET id = :old WHERE id = :new"
)
ANTEDATE = adhoc(
    "UPDATE embeddings_documents SET embedded_at ="
    " (SELECT min(embedded_at) FROM embeddings_documents WHERE id <> :late) - 3600000000"
    " WHERE id = :late",
    "UPDATE embeddings_documents SET embedded_at ="
    " (SELECT min(embedded_at) FROM embeddings_documents WHERE id <> :late) - interval '1 hour'"
    " WHERE id = :late",
)


async def run(database: Database, what: Statement, **told: Any) -> None:
    await database.write(lambda tx: tx.run(what, **told), verb="test")


@dataclass
class House:
    """A database with a collection `casa`, and who searches in it."""

    retoma: Retoma
    database: Database
    searcher: Searcher
    clock: FakeClock
    provider: Provider = field(default_factory=NGrams)
    collection: int = 0

    async def find(self, text: str, **more: Any) -> Found:
        return await self.searcher.find(Question(collection="casa", text=text, **more))

    async def names(self, text: str, **more: Any) -> list[str]:
        return [hit.name for hit in (await self.find(text, **more)).hits]

    async def add(self, **texts: str) -> list[int]:
        named = {name.replace("_", "."): text for name, text in texts.items()}
        return await add_documents(self.database, self.collection, named, self.provider)


def tools_of(retoma: Retoma, out: Outbound) -> Tools:
    """This is about memory, whatever the database has."""
    return Tools(retoma, out, settings=Settings(embeddings_store=Store.MEMORY))


def kept_of(searcher: Searcher) -> Any:
    """What its memory has, by collection."""
    held = searcher._store
    assert isinstance(held, MemoryStore)
    return held._kept


@asynccontextmanager
async def house(url: str, memory: int | None = None) -> AsyncIterator[House]:
    clock = FakeClock()
    async with Retoma(url, clock=clock) as retoma:
        database = await retoma.database()
        async with Outbound() as out:
            searcher = Searcher(tools_of(retoma, out), memory=memory)
            made = House(retoma, database, searcher, clock)
            made.collection = await add_collection(database, "casa", made.provider)
            await add_documents(database, made.collection, TEXTS, made.provider)
            yield made


@asynccontextmanager
async def house_at(there: House, memory: int) -> AsyncIterator[House]:
    """Another process at the same database, with less room."""
    async with Outbound() as out:
        searcher = Searcher(tools_of(there.retoma, out), memory=memory, at_once=2)
        yield replace(there, searcher=searcher)


async def test_the_nearest_comes_first_with_its_text_and_the_words_that_were_asked_for(
    database_url: str,
) -> None:
    async with house(database_url) as here:
        found = await here.find("multas de transito")

        first = found.hits[0]
        assert ("leis/multa.txt", 0, 3) == (first.name, first.ordinal, found.searched)
        assert TEXTS["leis/multa.txt"][first.start : first.end] == first.text
        assert first.score > found.hits[1].score > found.hits[2].score
        assert ["trânsito"] == [first.text[start:end] for start, end in first.spans]


async def test_filters_leave_out_what_was_not_asked_for(database_url: str) -> None:
    async with house(database_url) as here:
        [bolo] = (await here.find("bolo de cenoura", most=1)).hits

        assert {"leis/multa.txt", "leis/recurso.txt"} == set(
            await here.names("multa bolo", prefix="leis/")
        )
        assert ["cozinha/bolo.txt"] == await here.names("multa", documents=[bolo.document])
        assert [] == await here.names("multa", documents=[bolo.document], prefix="leis/")
        assert ["leis/multa.txt"] == await here.names("multa de trânsito", least=0.3)
        assert [] == await here.names("multa", documents=[])


async def test_what_is_embedded_meanwhile_is_found_at_once(database_url: str) -> None:
    async with house(database_url) as here:
        await here.find("multa")

        await here.add(novo_txt="Um dragão dourado voa sobre a montanha.")

        assert "novo.txt" == (await here.names("dragão dourado"))[0]


async def test_what_is_gone_is_in_no_answer_and_leaves_the_memory_within_a_minute(
    database_url: str,
) -> None:
    async with house(database_url) as here:
        [first] = (await here.find("multa de trânsito", most=1)).hits
        [other] = (await here.find("bolo de cenoura", most=1)).hits

        await remove_document(here.database, first.document)
        await remove_document(here.database, other.document)

        assert ["leis/recurso.txt"] == await here.names("multa de trânsito", most=1)
        here.clock.advance(61)
        assert 1 == (await here.find("multa")).searched


async def test_a_document_that_was_embedded_anew_is_found_by_what_it_says_now(
    database_url: str,
) -> None:
    async with house(database_url) as here:
        [first] = (await here.find("multa de trânsito", most=1)).hits

        await remove_document(here.database, first.document)
        [again] = await here.add(**{"leis/multa_txt": "Um dragão dourado voa."})
        await run(here.database, RENUMBER, old=first.document, new=again)

        assert "leis/multa.txt" == (await here.names("dragão dourado"))[0]
        assert "leis/recurso.txt" == (await here.names("multa de trânsito"))[0]


async def test_a_commit_that_came_late_is_found_within_a_minute(database_url: str) -> None:
    """Its time is older than what was seen before it: only the whole list tells of it."""
    async with house(database_url) as here:
        await here.find("multa")
        [late] = await here.add(novo_txt="Um dragão dourado voa sobre a montanha.")
        await run(here.database, ANTEDATE, late=late)
        here.clock.advance(61)

        assert "novo.txt" == (await here.names("dragão dourado"))[0]


async def test_documents_of_another_model_are_left_out_and_counted(database_url: str) -> None:
    async with house(database_url) as here:
        await change(here.database, "UPDATE embeddings_vectors SET version = '0'")
        await here.add(novo_txt="Um dragão dourado voa sobre a montanha.")

        found = await here.find("multa de trânsito")

        assert (["novo.txt"], 1, 3) == (
            [hit.name for hit in found.hits],
            found.searched,
            found.left_out,
        )


async def test_a_search_that_makes_no_sense_is_refused(database_url: str) -> None:
    async with house(database_url) as here:
        with pytest.raises(NotFound):
            await here.searcher.find(Question(collection="nada", text="multa"))
        for text, most in ((" ", 10), ("x" * 10_001, 10), ("multa", 0), ("multa", 101)):
            with pytest.raises(BadInput):
                Question(collection="casa", text=text, most=most)
        with pytest.raises(BadInput):
            await here.find("meia \ud800 letra")
        await change(here.database, "UPDATE embeddings_collections SET model = 'outro'")
        with pytest.raises(IllegalMove, match="outro"):
            await here.find("multa")


async def test_memory_is_bounded_by_letting_go_of_what_was_asked_for_least_lately(
    database_url: str,
) -> None:
    row = 4 * NGrams.dims
    async with house(database_url, memory=5 * row) as here:
        other = await add_collection(here.database, "outra", here.provider)
        await add_documents(here.database, other, TEXTS, here.provider)

        await here.find("multa")
        await here.searcher.find(Question(collection="outra", text="multa"))
        assert [other] == list(kept_of(here.searcher))

        assert 3 == (await here.find("multa")).searched
        assert [here.collection] == list(kept_of(here.searcher))


async def test_a_collection_that_memory_has_no_room_for_is_read_through_with_the_same_answer(
    database_url: str,
) -> None:
    async with house(database_url) as large, house_at(large, memory=1) as small:
        for asked in (
            {},
            {"prefix": "leis/"},
            {"documents": [1, 3]},
            {"least": 0.3},
            {"most": 1},
        ):
            wanted = await large.find("multa de trânsito", **asked)

            assert wanted == await small.find("multa de trânsito", **asked)

        assert {} == kept_of(small.searcher)


# — the matrix, held against the plain way —

PLACES = st.lists(
    st.tuples(st.sampled_from(["add", "drop"]), st.integers(1, 12), st.integers(0, 40)),
    max_size=60,
)


@given(PLACES, st.integers(1, 12), st.sets(st.integers(1, 12)) | st.none())
def test_what_is_nearest_is_what_a_plain_comparison_of_all_finds(
    moves: list[tuple[str, int, int]], most: int, only: set[int] | None
) -> None:
    rng = np.random.default_rng(7)
    matrix = Matrix(8)
    plain: dict[int, NDArray[Any]] = {}
    for move, document, rows in moves:
        if move == "drop":
            matrix.drop(document)
            plain.pop(document, None)
            continue
        plain[document] = _units(rng, rows)
        matrix.add(document, 1, range(rows), plain[document].tobytes())
    query = _units(rng, 1)[0]

    near = matrix.rows().nearest(query, most, only)

    scores = [
        (-float(vector @ query), document, ordinal)
        for document, vectors in plain.items()
        if only is None or document in only
        for ordinal, vector in enumerate(vectors)
    ]
    assert sum(map(len, plain.values())) == matrix.chunks
    wanted = sorted(scores)[:most]
    assert np.allclose(
        [-score for score, *_ in wanted], [each.score for each in near], atol=1e-6
    )
    assert {each[1:] for each in wanted} == {(each.document, each.ordinal) for each in near}


def test_rows_of_what_was_dropped_are_had_back_and_who_reads_meanwhile_is_not_disturbed() -> (
    None
):
    rng = np.random.default_rng(7)
    matrix = Matrix(8)
    for document in range(100):
        matrix.add(document, document, range(50), _units(rng, 50).tobytes())
    rows, query = matrix.rows(), _units(rng, 1)[0]
    kept = {_place(each) for each in rows.nearest(query, 5000) if each.document >= 60}

    for document in range(60):
        matrix.drop(document)

    assert len(matrix.rows().alive) < 4000
    assert kept == {_place(each) for each in matrix.rows().nearest(query, 5000)}
    assert 5000 == len(rows.vectors)


def _place(near: Near) -> tuple[int, int, int]:
    return near.document, near.stamp, near.ordinal


def _units(rng: np.random.Generator, rows: int) -> NDArray[Any]:
    made = rng.normal(size=(rows, 8))
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype="<f4")


# — the words of a question in a text —


def test_words_are_found_whatever_their_accents_case_and_end() -> None:
    text = "MULTAS de Trânsito; a multa-lhe, tumulta."

    assert ["MULTAS", "Trânsito", "multa"] == [
        text[start:end] for start, end in spans_of(text, "multa trânsito")
    ]


def test_short_words_are_looked_for_only_where_there_are_no_others() -> None:
    assert () == spans_of("o de a", "de multa")
    assert ((2, 4),) == spans_of("o de a", "de")
    assert () == spans_of("a.b", "!?")


@given(st.text(max_size=200), st.text(max_size=40))
def test_spans_lie_in_the_text_in_order_and_their_pieces_are_the_text(
    text: str, question: str
) -> None:
    spans = spans_of(text, question)

    assert "".join(piece for piece, _ in pieces_of(text, spans)) == text
    assert [text[start:end] for start, end in spans] == [
        piece for piece, marked in pieces_of(text, spans) if marked
    ]
