"""Items that are checked together are judged as each would be by itself."""

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retoma.programs.writer.checks import TOGETHER, Checker, Group
from retoma.programs.writer.model import Column, Family, Profile

HALF = "\ud800"  # of a surrogate pair
WIDE = "\uff12"  # a two, and no ASCII
KEY = "00000000-0000-0000-0000-00000000000"  # and a digit
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 7, 8, -8, -9, 10**400]),
    st.floats(allow_nan=False),
    st.text(max_size=4),
    st.sampled_from(
        ["\0", HALF, "2026-01-15", "2026-01-15T10:30:00Z", f"{WIDE}026-01-15", f"{KEY}1"]
    ),
    st.lists(st.integers(), max_size=1),
)


def checker(family: Family, *, nullable: bool = True, most: int | None = None) -> Checker:
    told = {"type": "of the test", "has_default": False}
    columns = (
        Column(name="id", family=Family.UUID, nullable=False, **told),  # type: ignore[arg-type]
        Column(name="value", family=family, nullable=nullable, most=most, **told),  # type: ignore[arg-type]
    )
    return Checker(
        Profile(
            name="ads",
            table="ads",
            schema="public",
            conflict_key="id",
            json_path="ads",
            columns=columns,
            origins=(),
        )
    )


def sort(of: Checker, items: list[Any]) -> Group:
    return of.sort(0, [(item, json.dumps(item)) for item in items])


def told(group: Group, index: int) -> str | None:
    """What was found to be wrong with one."""
    return next((each.error for each in group.failed if each.index == index), None)


@pytest.mark.parametrize("family", Family)
@settings(deadline=None, max_examples=50)
@given(
    values=st.lists(VALUES, min_size=1, max_size=3),
    nullable=st.booleans(),
    most=st.sampled_from([None, 7]),
)
@example(values=["\0"], nullable=True, most=None)
@example(values=[HALF], nullable=True, most=None)
@example(values=[float("inf")], nullable=True, most=None)
@example(values=[True], nullable=True, most=None)
@example(values=[None], nullable=False, most=None)
@example(values=[f"{KEY}{WIDE}"], nullable=True, most=None)
def test_many_values_are_judged_as_each_by_itself(family, values, nullable, most):
    checks = checker(family, nullable=nullable, most=most)
    items = [{"id": f"{KEY}{n}", "value": value} for n, value in enumerate(values)]
    without_key = {"id": None, "value": None}  # beside it each is looked at by itself

    together = sort(checks, items)

    alone = [told(sort(checks, [item, without_key]), 0) for item in items]
    assert alone == [told(together, n) for n in range(len(items))]
    assert alone.count(None) == len(together.rows)


def test_of_those_with_the_same_key_the_first_is_taken_however_its_fields_are_ordered():
    checks = checker(Family.TEXT)
    first = {"value": "first", "id": f"{KEY}a"}
    again = {"id": f"{KEY}A", "value": "again"}
    bad = {"id": f"{KEY}b", "value": 1}
    good = {"id": f"{KEY}b", "value": "the bad one before it does not count"}

    group = sort(checks, [bad, first, again, good])

    assert {1: first, 3: good} == {index: item for _, (index, item, _) in group.rows}
    assert [0, 2] == sorted(each.index for each in group.failed)
    assert "is in this group already" in str(told(group, 2))


def test_a_bad_one_among_many_is_the_only_one_that_fails():
    count = 2 * TOGETHER + 1
    items: list[Any] = [{"id": f"{n:032}", "value": n} for n in range(count)]
    items[TOGETHER] = {**items[TOGETHER], "value": "no number"}
    items[-1] = {"id": f"{count:032}", "other": 1}

    group = sort(checker(Family.INTEGER), items)

    assert [TOGETHER, count - 1] == sorted(each.index for each in group.failed)
    assert count - 2 == len(group.rows)
