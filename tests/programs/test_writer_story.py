"""How a source is divided: by count and by size, from its beginning, wherever somebody goes on."""

import hashlib

import pytest

from retoma.programs.writer.items import Found
from retoma.programs.writer.story import LARGE, _Changed, _Reader
from retoma.programs.writer.target import Mark

SMALL, HUGE = "s" * 10, "h" * (LARGE // 2)


def items(*texts: str) -> list[Found]:
    return [({"n": n}, text) for n, text in enumerate(texts)]


def starts(reader: _Reader, found: list[Found]) -> list[tuple[int, int]]:
    portions = [*reader.full(found), reader.rest()]
    return [(each.start, len(each.found)) for each in portions]


def digest(found: list[Found]) -> str:
    return hashlib.sha256("".join(text for _, text in found).encode()).hexdigest()


def test_a_group_ends_with_its_count_or_its_size():
    found = items(SMALL, SMALL, SMALL, HUGE, HUGE, SMALL, SMALL)

    assert [(0, 3), (3, 2), (5, 2)] == starts(_Reader(Mark(), 3), found)


@pytest.mark.parametrize("stored", [3, 5])
def test_going_on_divides_what_is_left_as_before(stored):
    found = items(SMALL, SMALL, SMALL, HUGE, HUGE, SMALL, SMALL)
    mark = Mark(processed=stored, digest=digest(found[:stored]))

    assert [(0, 3), (3, 2), (5, 2)][-1 if stored == 5 else -2 :] == starts(
        _Reader(mark, 3), found
    )


@pytest.mark.parametrize("found", [items(SMALL), items(SMALL, SMALL, HUGE, SMALL), []])
def test_another_source_is_seen(found):
    mark = Mark(processed=3, digest=digest(items(SMALL, SMALL, SMALL)))

    with pytest.raises(_Changed):
        starts(_Reader(mark, 3), found)


def test_a_source_that_ends_where_it_was_left_has_nothing_more():
    found = items(SMALL, SMALL, SMALL)

    assert [(3, 0)] == starts(_Reader(Mark(processed=3, digest=digest(found)), 3), found)
