"""Search by vectors and words together: merged by rank, filtered exactly, each text once, and judged on a labelled set."""

import pytest

from bench import recall
from retoma.apps.embeddings import store
from retoma.apps.embeddings.keywords import indexed_words, query_terms
from retoma.apps.embeddings.model import NewDocument, parse_pairs
from retoma.apps.embeddings.vectors import Mode, Question, search
from retoma.engine.rules.errors import BadInput
from tests.apps.embeddings.aids import COLLECTION, WHO, House, house, long_text

CITY = {
    "multa.txt": "O recurso contra a multa de trânsito é entregue em trinta dias.",
    "bolo.txt": "A receita do bolo de cenoura leva ovos, farinha e açúcar.",
    "mar.txt": "O mar batia nas pedras, e os barcos voltavam com o protocolo XK-4471.",
}


async def find(here: House, text: str, **more):
    asked = Question(collection=COLLECTION, text=text, mode=Mode.HYBRID, **more)
    return await here.searcher().find(asked)


async def names(here: House, text: str, **more):
    return [hit.name for hit in (await find(here, text, **more)).hits]


async def add(here: House, *new: NewDocument):
    await here.collection()

    def write(tx):
        found = store.collections.lock(tx, COLLECTION)
        return store.documents.add(tx, found.id, COLLECTION, new, actor=WHO)

    return await here.app.write(write)


# — what is found —


async def test_on_the_labelled_set_hybrid_search_finds_no_less_than_vectors_alone(database_url):
    async with house(database_url) as here:
        given = recall.labelled()
        await here.add(*given["texts"].items())
        await here.drained()
        searcher, found = here.searcher(), {}

        for mode in Mode:

            async def asked(text, mode=mode):
                question = Question(collection=COLLECTION, text=text, most=5, mode=mode)
                return [hit.name for hit in (await searcher.find(question)).hits]

            found[mode] = await recall.percent(asked)

    assert 60 <= len(given["texts"]) <= 100
    assert 20 <= len(given["questions"]) <= 30
    assert found[Mode.HYBRID] > found[Mode.VECTOR] >= 80


async def test_a_rare_word_is_found_among_texts_that_are_nearer(database_url):
    """Short texts of the same pieces of words are nearer; only one says the word."""
    async with house(database_url) as here:
        near = [(f"{n}.txt", f"kz4471{n} z4471 k4471") for n in range(60)]
        await here.add(("rara.txt", " ".join([*CITY.values()] * 3) + " Código xk4471z."), *near)
        await here.drained()

        found = await find(here, "xk4471z", most=5)
        plain = await here.searcher().find(
            Question(collection=COLLECTION, text="xk4471z", most=5)
        )

    assert "rara.txt" in [hit.name for hit in found.hits]
    assert "rara.txt" not in [hit.name for hit in plain.hits]
    assert 61 == found.searched == plain.searched
    assert all(-1 <= hit.score <= 1 for hit in found.hits)


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("MULTAS DO TRANSITO", "multa.txt"),
        ("cenouras", "bolo.txt"),
        ("xk", "mar.txt"),
        ('"; DROP TABLE embeddings_words; -- barcos', "mar.txt"),
        ("barco* OR AND NEAR( words:", "mar.txt"),
        ("barcos' | !mar:*", "mar.txt"),
    ],
)
async def test_words_are_found_whatever_their_accents_case_end_and_signs(
    database_url, question, first
):
    async with house(database_url) as here:
        await here.add(*CITY.items())
        await here.drained()

        assert first == (await names(here, question))[0]


async def test_a_question_without_words_is_answered_by_its_vector(database_url):
    async with house(database_url) as here:
        await here.add(*CITY.items())
        await here.drained()

        assert 3 == len(await names(here, "!!!"))


# — the index follows —


async def test_what_changed_or_went_is_found_by_what_it_says_now(database_url):
    async with house(database_url) as here:
        added = await here.add(*CITY.items())
        await here.drained()
        assert "mar.txt" == (await names(here, "xk"))[0]

        await here.remove(added.new[2])
        await here.add(("multa.txt", "Agora o protocolo XK está aqui."))
        await here.drained()
        assert ["multa.txt", "bolo.txt"] == await names(here, "xk")
        await here.reembed(size=200, overlap=0)
        await here.drained()
        assert "multa.txt" == (await names(here, "xk"))[0]

        [(rows,)] = await here.rows("SELECT count(*) FROM embeddings_words")
        assert 2 == rows


async def test_one_collection_is_not_searched_for_another(database_url):
    async with house(database_url) as here:
        await here.add(*CITY.items())
        await here.add(("outro.txt", "O protocolo XK-4471 de outra coleção."), to="outra")
        await here.drained()

        assert "outro.txt" not in await names(here, "xk 4471")


async def test_one_question_indexes_so_much_and_says_what_is_left(database_url, monkeypatch):
    monkeypatch.setattr(search, "INDEXED", 30)
    monkeypatch.setattr(store.keywords, "SLICE", 30)
    async with house(database_url) as here:
        await here.collection(size=100, overlap=0)
        await here.add(*((f"{n}.txt", long_text(f"palavra{n}")) for n in range(5)))
        await here.drained()

        left = [(await find(here, "palavra4", most=1)).unindexed for _ in range(4)]

    assert left[0] > 0
    assert sorted(left, reverse=True) == left
    assert 0 == left[-1]


# — filters —


async def test_metadata_is_matched_exactly_and_in_both_lists(database_url):
    async with house(database_url) as here:
        added = await add(
            here,
            NewDocument("a.txt", "multa de ana", {"autor": "Ana", "ano": 2024, "lido": True}),
            NewDocument("b.txt", "multa de bia", {"autor": "Bia", "ano": 2024}),
            NewDocument("c.txt", "multa de ninguém"),
            NewDocument("d.txt", "multa", {"autor": "Ana", "x": "y" * 501}),
            NewDocument("e.txt", "multa", {"autor; DROP": "Ana"}),
            NewDocument("f.txt", "multa", {str(n): n for n in range(21)}),
        )
        await here.drained()

        assert ["bad_metadata"] * 3 == [flaw.code for flaw in added.flaws]
        assert ["a.txt"] == await names(here, "multa", metadata={"autor": "Ana"})
        assert {"a.txt", "b.txt"} == {*await names(here, "multa", metadata={"ano": 2024})}
        assert ["b.txt"] == await names(here, "multa", metadata={"ano": "2024", "autor": "Bia"})
        assert ["a.txt"] == await names(here, "multa", metadata={"lido": True})
        assert [] == await names(here, "multa", metadata={"autor": "ana"})
        assert [] == await names(here, "multa", metadata={"autor": "' OR 1=1 --"})
        assert [] == await names(here, "multa", metadata={"ano": 2024}, prefix="c")
        assert {"autor": "Bia", "ano": 2024} == (await find(here, "bia")).hits[0].metadata
        with pytest.raises(BadInput, match="a key of metadata"):
            await names(here, "multa", metadata={"a b": "c"})


async def test_other_metadata_of_the_same_text_takes_its_place_and_costs_nothing(database_url):
    async with house(database_url) as here:
        await add(here, NewDocument("a.txt", "multa", {"autor": "Ana"}))
        await here.drained()
        asked = len(here.provider.calls)
        again = await add(here, NewDocument("a.txt", "multa", {"autor": "Bia"}))
        await add(here, NewDocument("a.txt", "multa"))  # says nothing of it: it stays
        await here.drained()

        assert (None, {0: 1}) == (again.batch, again.already)
        assert asked == len(here.provider.calls)
        assert [] == await names(here, "multa", metadata={"autor": "Ana"})
        assert ["a.txt"] == await names(here, "multa", metadata={"autor": "Bia"})
        await here.remove(1)
        assert [(0,)] == await here.rows("SELECT count(*) FROM embeddings_metadata")


def test_metadata_is_written_as_pairs():
    assert {"a": "b", "c": "d=e"} == parse_pairs(["a=b", " c = d=e ", ""])
    with pytest.raises(BadInput, match="key=value"):
        parse_pairs(["a"])


# — duplicates —


@pytest.mark.parametrize("mode", [*Mode])
async def test_chunks_that_say_the_same_are_one_hit_and_leave_room_for_others(
    database_url, mode
):
    async with house(database_url) as here:
        copies = [(f"copia/{n}.txt", "A multa de trânsito.") for n in range(70)]
        await here.add(*copies, *CITY.items())
        await here.drained()

        asked = Question(collection=COLLECTION, text="multa de trânsito", most=3, mode=mode)
        found = await here.searcher().find(asked)

    first, second, third = found.hits
    assert ("copia/0.txt", 69) == (first.name, first.duplicates)
    assert ("multa.txt", 0, 0) == (second.name, second.duplicates, third.duplicates)


# — the words —


def test_words_are_the_same_for_what_is_indexed_and_for_what_is_asked():
    assert "acao e reacao 3d o_o".replace("_", " ") == indexed_words("Ação e REAÇÃO: 3D o_o!")
    assert "[\"'reac':*\"]" == query_terms("a reação", 1, "postgres")
    assert 'collection:c7 AND words:("reac"* OR "sol")' == query_terms(
        "Reação Sol", 7, "sqlite"
    )
    assert "[\"'item077'\"]" == query_terms("item077", 1, "postgres")
    assert query_terms("?!", 1, "sqlite") is None
