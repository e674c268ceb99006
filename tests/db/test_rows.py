"""Rows as objects: the same from both databases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, NamedTuple

import pytest

from retoma.db import Database, Transaction, adhoc

AT = datetime(2026, 11, 19, 12, 30, tzinfo=UTC)
MAKE = adhoc(
    "CREATE TABLE things (id integer, good integer, at integer, day text, price text, data text)",
    "CREATE TABLE things (id integer, good boolean, at timestamptz, day date, price numeric,"
    " data jsonb)",
)
ADD = adhoc(
    "INSERT INTO things VALUES (:id, :good, :at, :day, :price, :data)",
    "INSERT INTO things VALUES (:id, CAST(CAST(:good AS integer) AS boolean), :at,"
    " CAST(:day AS date), CAST(:price AS numeric), CAST(:data AS jsonb))",
)
ALL = adhoc("SELECT id, good, at, day, price, data FROM things ORDER BY id")
TIMES = adhoc("SELECT at FROM things ORDER BY id")
SMALL = adhoc("SELECT id, 'red' AS color FROM things ORDER BY id")


class Color(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    id: int
    good: bool | None
    at: datetime | None
    day: date | None
    price: Decimal | None
    data: Mapping[str, Any] | None
    note: str = "no column"


@dataclass(frozen=True, slots=True)
class Small:
    id: int
    color: Color


class Pair(NamedTuple):
    id: int
    color: Color
    more: Sequence[int] = ()


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Inner:
    small: Small
    point: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Nest:
    name: str
    inner: Inner
    last: str


async def prepare(database: Database) -> None:
    def write(tx: Transaction) -> None:
        tx.run(MAKE)
        full = {"day": "2026-11-19", "price": "1.50", "data": '{"a": [1]}'}
        tx.run(ADD, id=1, good=1, at=AT, **full)
        tx.run(ADD, id=2, good=None, at=None, **dict.fromkeys(full))

    await database.write(write, verb="things")


async def test_a_row_becomes_an_object_by_the_annotations_of_its_fields(database):
    await prepare(database)

    found = await database.read(lambda tx: tx.all(ALL, into=Thing))

    nothing: dict[str, Any] = dict.fromkeys(("good", "at", "day", "price", "data"))
    assert found == [
        Thing(
            id=1,
            good=True,
            at=AT,
            day=date(2026, 11, 19),
            price=Decimal("1.50"),
            data={"a": [1]},
        ),
        Thing(id=2, **nothing),
    ]
    assert found[0].good is True


@pytest.mark.parametrize("shape", [Small, Pair])
async def test_a_dataclass_and_a_named_tuple_are_filled_in_the_order_of_the_columns(
    database, shape
):
    await prepare(database)

    one = await database.read(lambda tx: tx.one(SMALL, into=shape))

    assert one == shape(1, Color.RED)
    assert isinstance(one.color, Color)


async def test_a_single_value_needs_no_class(database):
    await prepare(database)

    assert [AT, None] == await database.read(lambda tx: tx.all(TIMES, into=datetime))
    assert await database.read(lambda tx: tx.one(TIMES, into=datetime)) == AT


async def test_no_row_is_none(database):
    await prepare(database)

    none = adhoc("SELECT id, 'red' AS color FROM things WHERE id = 3")

    assert await database.read(lambda tx: tx.one(none, into=Small)) is None
    assert [] == await database.read(lambda tx: tx.all(none, into=Small))


async def test_a_field_that_is_a_class_takes_as_many_columns_as_that_has_fields(database):
    await prepare(database)
    nested = adhoc("SELECT 'a' AS name, 1 AS id, 'red' AS color, 2 AS x, 3 AS y, 'z' AS last")

    one = await database.read(lambda tx: tx.one(nested, into=Nest))

    assert one == Nest(name="a", inner=Inner(Small(1, Color.RED), Point(2, 3)), last="z")


@pytest.mark.parametrize("statement", [TIMES, ALL])
async def test_a_row_of_another_width_names_the_statement_and_the_fields(database, statement):
    await prepare(database)

    with pytest.raises(TypeError, match=r"adhoc returns \d columns, and Small .*: id, color"):
        await database.read(lambda tx: tx.all(statement, into=Small))
