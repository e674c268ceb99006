"""Texts in chunks: nothing is lost, nothing is too long, words stay whole, and the same goes in as comes out."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma.apps.embeddings.chunks import Chunk, Rule, chunked, content_hash
from retoma.engine.rules.errors import BadInput

LETTERS = "ab. \n\t!?。é"
TEXTS = st.one_of(
    st.text(max_size=400),
    st.text(alphabet=LETTERS, max_size=400),
    st.lists(st.text(alphabet="abc.", min_size=1, max_size=30), max_size=60).map(" ".join),
)
RULES = st.integers(8, 60).flatmap(
    lambda size: st.builds(Rule, st.just(size), st.integers(0, size // 2))
)


@given(TEXTS, RULES)
def test_every_character_that_is_no_space_is_in_a_chunk(text: str, rule: Rule) -> None:
    covered = set[int]()
    for chunk in chunked(text, rule):
        covered.update(range(chunk.start, chunk.end))

    assert {place for place, each in enumerate(text) if not each.isspace()} <= covered


@given(TEXTS, RULES)
def test_chunks_are_what_stands_there_within_their_size_and_in_order(
    text: str, rule: Rule
) -> None:
    chunks = chunked(text, rule)

    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end] == chunk.text.strip()
        assert 0 < len(chunk.text) <= rule.size
    for before, after in pairwise(chunks):
        assert before.start < after.start
        assert before.end < after.end
        assert before.end - after.start <= rule.overlap


@given(TEXTS, RULES)
def test_the_same_text_gives_the_same_chunks(text: str, rule: Rule) -> None:
    assert chunked(text, rule) == chunked(text, rule)


@given(
    st.lists(st.text(alphabet="abcde", min_size=1, max_size=20), max_size=80),
    st.integers(20, 50).flatmap(
        lambda size: st.builds(Rule, st.just(size), st.integers(0, size // 2))
    ),
)
def test_no_word_that_fits_is_cut(words: list[str], rule: Rule) -> None:
    text = " ".join(words)

    for chunk in chunked(text, rule):
        assert chunk.start == 0 or text[chunk.start - 1] == " "
        assert chunk.end == len(text) or text[chunk.end] == " "


def test_a_paragraph_ends_a_chunk_before_a_sentence_does_and_a_sentence_before_a_word() -> None:
    paragraphs = "Um lugar. Dois lugares.\n\nTrês lugares. Mais um pouco de texto."
    sentences = "Um lugar e dois. Três lugares e mais um pouco de texto."

    assert chunked(paragraphs, Rule(40, 0))[0].text == "Um lugar. Dois lugares."
    assert chunked(sentences, Rule(30, 0))[0].text == "Um lugar e dois."


def test_the_next_chunk_says_the_last_words_again() -> None:
    chunks = chunked("alfa beta gama delta epsilon", Rule(16, 6))

    assert [each.text for each in chunks] == ["alfa beta gama", "gama delta", "delta epsilon"]


def test_a_word_longer_than_a_chunk_is_cut_and_overlaps_as_any_other() -> None:
    chunks = chunked("x" * 20, Rule(10, 4))

    assert chunks == [
        Chunk(0, 0, 10, "x" * 10),
        Chunk(1, 6, 16, "x" * 10),
        Chunk(2, 12, 20, "x" * 8),
    ]


def test_an_empty_text_has_no_chunks() -> None:
    assert chunked("", Rule(10, 0)) == []
    assert chunked(" \n\t ", Rule(10, 0)) == []


def test_ten_megabytes_are_cut_as_any_other_text() -> None:
    text = "palavra de um texto longo. " * 400_000

    chunks = chunked(text, Rule(1000, 100))

    assert len(text.rstrip()) == chunks[-1].end
    assert max(len(each.text) for each in chunks) <= 1000


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (7, 0), (-5, 0), (100, 51), (100, -1)])
def test_a_rule_that_cannot_be_kept_is_refused(size: int, overlap: int) -> None:
    with pytest.raises(BadInput):
        Rule(size, overlap)


def test_a_hash_is_of_the_text_the_model_its_version_and_its_dims() -> None:
    told = [
        content_hash("a", "m", "1", 384),
        content_hash("b", "m", "1", 384),
        content_hash("a", "n", "1", 384),
        content_hash("a", "m", "2", 384),
        content_hash("a", "m", "1", 385),
        content_hash("a", "m1", "", 384),
        content_hash("\ud800", "m", "1", 384),
    ]

    assert len(told) == len(set(told))
    assert content_hash("a", "m", "1", 384) == told[0]
    assert all(re.fullmatch("[0-9a-f]{64}", each) for each in told)
