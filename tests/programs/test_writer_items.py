"""Items of a document that comes in pieces: the same whatever the pieces are, and never one lost for another's sake."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retoma.programs.writer.items import Bad, Broken, Items, NoArray

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


def read(document: str | bytes, size: int = 7, **how: Any) -> list[Any]:
    raw = document if isinstance(document, bytes) else document.encode()
    items = Items("ads", **how)
    found: list[Any] = []
    for at in range(0, len(raw), size):
        found += items.feed(raw[at : at + size])
    found += items.end()
    return [value for value, _ in found]


@settings(deadline=None, max_examples=60)
@given(
    ads=st.lists(JSON, max_size=5),
    before=JSON,
    after=JSON,
    size=st.integers(1, 40),
    plain=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
def test_what_is_read_is_what_is_there(ads, before, after, size, plain, indent):
    told = {"before": before, "ads": ads, "z": after}

    text = json.dumps(told, ensure_ascii=plain, indent=indent)

    assert ads == read(text, size)


BROKEN = (
    *('{"ads":[1,2', '{"ads":[1,2]', "", '{"ads":[1,]}', '{"ads":[1 2]}', '{"ads":[{"a":1,}]}'),
    *('{"ads":[,1]}', '{"ads":[1]}x', '{"ads":[1],}', '{"ads":[}', '{"ads":[nul]}', '{"ads'),
    *(
        '{"ads":[1],"ads":[2]}',
        '{"ads":["a',
        '{"ads":[{"a":"b\\',
        "{x",
        '{"a" 1}',
        '{"a":1 "b":2}',
    ),
)


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_json_or_has_no_end_is_broken(text, size):
    with pytest.raises(Broken):
        read(text, size)


@pytest.mark.parametrize("text", ["{}", "[1]", '{"ads":{}}', '{"x":[1]}', "3 ", '{"ads":null}'])
def test_what_has_no_array_says_so(text):
    with pytest.raises(NoArray):
        read(text)


def test_no_bytes_of_another_encoding():
    with pytest.raises(Broken):
        read(b'{"ads":["\xff"]}')


@pytest.mark.parametrize("size", [50, 1_000_000])
def test_a_bad_item_is_one_item(size):
    deep = "[" * 100_000 + "]" * 100_000
    long = json.dumps({"id": 1, "text": "y" * 5_000 + '\\"]}'})
    text = f'{{"beside":"{"x" * 9_000}","ads":[{{"a":NaN}},1,{deep},{long},{"9" * 5_000},2]}}'

    nan, one, too_deep, too_long, too_large, two = read(text, size, most=3_000)

    assert [1, 2] == [one, two]
    for each in (nan, too_deep, too_long, too_large):
        assert isinstance(each, Bad)
        assert len(each.beginning) <= 2_000


def test_what_comes_byte_by_byte_is_not_looked_at_from_its_beginning_each_time():
    """A source that drips must not cost the square of an item's length."""
    text = json.dumps({"ads": [{"a": "x" * 200_000}]})

    assert 1 == len(read(text, 1))


def test_memory_does_not_grow_with_the_document():
    """Nothing of what was given away is kept."""
    items = Items("ads")
    items.feed(b'{"ads":[')
    piece = b",".join(b'{"id":%d}' % n for n in range(5_000)) + b","

    for _ in range(20):
        assert 5_000 >= len(items.feed(piece)) >= 4_999
        assert len(items._text) <= 2 * len(piece)


ODD_ONES = [
    '{"id": 1, "t": "a } b"}',
    '{"id": 2, "t": "a { b"}',
    '{"id": 3, "t": {"deep": [1, 2]}}',
    '{"id": 4, "t": "}, {"}',
    '{"id": 5, "t": "\\""}',
    '{"id": 6}',
]


@pytest.mark.parametrize("between", [",", ", ", " ,\n\t"])
@pytest.mark.parametrize("piece", [1, 7, 64, 10_000])
@pytest.mark.parametrize("odd", [None, *ODD_ONES])
def test_many_objects_are_read_together_and_each_has_its_own_text(between, piece, odd):
    texts = [f'{{"id": {n}, "t": "número {n}"}}' for n in range(100, 160)]
    if odd is not None:
        texts.insert(30, odd)
    document = f'{{"ads": [{between.join(texts)}], "more": {{}}}}'.encode()
    items, found = Items("ads"), []
    for at in range(0, len(document), piece):
        found += items.feed(document[at : at + piece])
    found += items.end()

    assert [(json.loads(text), text) for text in texts] == found
