"""What encode() takes, decode() gives back; what a database would refuse is refused before."""

import collections
import decimal
import enum
import math
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from retoma import codec
from retoma.codec import Undecodable, Unstorable, decode, digest, encode

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(characters)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=30,
)


def nested(depth: int) -> list[Any]:
    """So many lists, one in another."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


# --- plain JSON values


@given(json_values)
@example(-0.0)
@example(1e22)
@example(1e308)
@example(5e-324)
@example(10**30)
@example("\\u0000 is six characters")
@example("é \u2028 \x7f \U0001f389")
@example({"b": 1, "a": {"": []}})
def test_e22_a_json_value_comes_back_the_same(value):
    text = encode(value)

    assert repr(value) == repr(decode(text))  # repr tells -0.0 from 0.0 and 1 from 1.0 and True
    assert text == encode(decode(text))
    assert digest(text) == digest(encode(decode(text)))


def test_the_text_is_compact_keeps_the_order_of_keys_and_escapes_no_letters():
    assert '{"b":[1,2.5,null],"a":"é\u2028/"}' == encode({"b": [1, 2.5, None], "a": "é\u2028/"})


def test_a_tuple_is_stored_as_a_list():
    assert '{"pair":[1,[2]]}' == encode({"pair": (1, (2,))})


def test_an_integer_may_have_as_many_digits_as_python_reads():
    longest = 10**codec.MAX_DIGITS - 1

    assert longest == decode(encode(longest))


def test_a_value_may_be_nested_as_deep_as_the_cap():
    deepest = nested(codec.MAX_DEPTH)

    assert deepest == decode(encode(deepest))


def test_the_digest_is_that_of_the_text_in_utf_8():
    assert "f2886017e9c7abacf804b54d64787dce2b611c9544ba21f3affdd126a6e50086" == digest(
        encode("é")
    )


def test_numbers_that_are_equal_in_python_but_not_in_json_have_different_digests():
    assert digest(encode(1)) != digest(encode(1.0)) != digest(encode(True))


# --- refusals


@dataclass
class Node:
    next: "Node | None" = None


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1


class Mode(enum.Enum):
    FAST = "fast"


class Ratio(enum.Enum):
    HALF = 0.5


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("not even a name")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (math.nan, "$"),
        ([1.0, math.inf], "$[1]"),
        ({"a": {"b": [0, -math.inf]}}, "$.a.b[1]"),
        ("a\0b", "$"),
        ({"text": "\0"}, "$.text"),
        ({"a": {"\0": 1}}, "$.a"),
        (["\ud800"], "$[0]"),
        ({"\udfff": 1}, "$"),
        ({1: "a"}, "$"),
        ({"a": [{None: 1}]}, "$.a[0]"),
        ({"a": {True: 1}}, "$.a"),
        ({"odd key": {2.5: 1}}, "$['odd key']"),
        ({("a",): 1}, "$"),
        ([10**codec.MAX_DIGITS], "$[0]"),
        ({"n": -(10**codec.MAX_DIGITS)}, "$.n"),
        ({"b": b"bytes"}, "$.b"),
        ([{1, 2}], "$[0]"),
        (decimal.Decimal("1.5"), "$"),
        (datetime(2026, 11, 15, tzinfo=UTC), "$"),
        (Node, "$"),
        ([Ratio.HALF], "$[0]"),
        (Node(Node("\0")), "$.next.next"),  # type: ignore[arg-type]  # the point of the test
        ([Broken()], "$[0]"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isprintable() else "",
)
def test_h_x3_what_a_database_would_refuse_is_refused_before_with_its_place(value, path):
    with pytest.raises(Unstorable) as refused:
        encode(value)

    assert path == refused.value.path
    assert f"at {path}: " in str(refused.value)
    assert refused.value.value_repr in str(refused.value)


@pytest.mark.parametrize("depth", [codec.MAX_DEPTH + 1, 5_000, 200_000])
def test_a_value_nested_too_deep_is_refused_never_a_recursion_error(depth):
    with pytest.raises(Unstorable, match="nested deeper than 100"):
        encode(nested(depth))


def test_a_value_that_holds_itself_is_refused():
    ring: list[Any] = []
    ring.append({"again": ring})
    node = Node()
    node.next = node

    for value in (ring, node):
        with pytest.raises(Unstorable, match="nested deeper"):
            encode(value)


def test_a_model_that_only_ever_shows_another_model_is_refused():
    class Endless:
        def model_dump(self, **_: object) -> "Endless":
            return self

    with pytest.raises(Unstorable, match="nested deeper"):
        encode(Endless())


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f389", "\n"])
def test_the_cap_counts_the_bytes_of_the_text(letter):
    each = len(encode(letter).encode()) - 2
    fits = letter * ((codec.MAX_BYTES - 2) // each)

    assert len(encode(fits).encode()) <= codec.MAX_BYTES
    with pytest.raises(Unstorable, match="attach it as evidence"):
        encode(fits + letter)


def test_a_number_too_long_for_others_is_refused_where_this_python_would_write_it():
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(Unstorable, match="at most 4,300 digits"):
            encode({"n": 10**codec.MAX_DIGITS})
    finally:
        sys.set_int_max_str_digits(limit)


def test_a_refusal_shows_little_of_what_it_refused():
    with pytest.raises(Unstorable) as refused:
        encode({"page": "secret " * 10_000 + "\0"})

    assert len(str(refused.value)) < 300
    assert "\0" not in str(refused.value)


def test_refusals_travel_between_processes():
    for error in (Unstorable(b"x", "no form"), Undecodable("expected text")):
        error.lies_under("field")

        copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes

        assert (str(error), "$.field") == (str(copy), copy.path)


# --- types beside JSON's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    name: str
    price: float = 0.0
    tags: tuple[str, ...] = ()


@dataclass
class Order:
    id: int
    items: list[Item]
    colour: Colour | None = None
    _: KW_ONLY
    notes: dict[str, Item] = field(default_factory=dict)
    total: float = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(item.price for item in self.items)


@dataclass
class Tree:
    label: str
    children: "list[Tree]" = field(default_factory=list)


class Point(NamedTuple):
    x: int
    colour: Colour


class Person(TypedDict):
    name: str
    item: NotRequired[Item]


class Model(BaseModel):
    model_config = ConfigDict(frozen=True)
    at: datetime
    price: decimal.Decimal
    page_url: str = Field(alias="pageUrl")


@dataclass
class Dog:
    name: str


@dataclass
class Cat:
    name: str


UserId = NewType("UserId", int)
APPLE = Item(name="apple", price=1.5, tags=("red", "round"))
MODEL = Model(at=datetime(2026, 11, 15, tzinfo=UTC), price=decimal.Decimal("1.10"), pageUrl="é")


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (APPLE, Item),
        ([APPLE, APPLE], list[Item]),
        ([APPLE], Sequence[Item]),
        ({"a": APPLE}, dict[str, Item]),
        ({"a": [APPLE]}, Mapping[str, list[Item]]),
        ((1, APPLE, Colour.RED), tuple[int, Item, Colour]),
        ((APPLE, APPLE), tuple[Item, ...]),
        ((1, "a"), tuple),
        (Order(1, [APPLE], Colour.BLUE, notes={"x": APPLE}), Order),
        (Order(1, []), Order | None),
        (None, Order | None),
        (Tree("a", [Tree("b", [Tree("c")])]), Tree),
        (Point(1, Colour.RED), Point),
        ({"name": "Ana", "item": APPLE}, Person),
        ({"name": "Ana"}, Person),
        (Colour.RED, Colour),
        (Size.SMALL, Size),
        (Mode.FAST, Mode),
        ({Colour.RED: Size.SMALL}, dict[str, Size]),
        (MODEL, Model),
        ([MODEL, None], list[Model | None]),
        (Cat("Tom"), Cat),
        (3, int),
        (3, float),
        (2.5, float),
        (True, bool),
        ("a", str),
        (None, type(None)),
        ("b", Literal["a", "b"]),
        (Colour.RED, Literal[Colour.RED]),
        (7, UserId),
        (7, Annotated[int, "a note"]),
        (7, Annotated[int, ["a note that cannot be hashed"]]),
        (7, int | str),
        ("a", int | str),
        ({"a": [1, None]}, Any),
        ({"a": [1, None]}, object),
        ({"a": 1}, dict),
        ([1, "a"], list),
        ([1, "a"], None),
    ],
    ids=str,
)
def test_e22_a_value_comes_back_as_its_annotation_says(value, annotation):
    found = decode(encode(value), annotation)

    assert value == found
    assert type(value) is type(found)


# --- what JSON has no form for


@dataclass(frozen=True)
class Bill:
    price: Decimal
    at: datetime
    due: date | None = None
    lines: dict[str, list[Decimal]] = field(default_factory=dict)
    scan: bytes = b""


class Invoice(BaseModel):
    id: UUID
    bills: list[Bill]
    left: timedelta = timedelta()


class Strict(BaseModel):
    model_config = ConfigDict(
        strict=True, ser_json_bytes="base64", val_json_bytes="base64", frozen=True
    )
    at: datetime
    scan: bytes


class Receipt(TypedDict):
    total: Decimal


class Line(NamedTuple):
    price: Decimal
    n: int


class Handle:
    """Nothing that JSON knows."""


PRICE = Decimal("12.50")
MORNING = datetime(2026, 3, 1, 9, 30, 0, 250, tzinfo=timezone(timedelta(hours=-3)))
BILL = Bill(PRICE, MORNING, date(2026, 3, 31), {"a": [PRICE, Decimal("-0.00")]}, b"\x00\xff")
PAID = Bill(PRICE, MORNING, scan=b"paid")
MY_ID = UUID("0f8fad5b-d9cb-469f-a165-70867728950e")


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (PRICE, Decimal),
        (Decimal("1E+5"), Decimal),
        (Decimal("-0.000"), Decimal),
        (Decimal(10) ** 5_000, Decimal),
        (MORNING, datetime),
        (MORNING.replace(tzinfo=None), datetime),
        (datetime(1, 1, 1), datetime),  # noqa: DTZ001  # naive is a promise too
        (datetime.max.replace(tzinfo=UTC), datetime),
        (date(1, 1, 1), date),
        (time(9, 30, 0, 1), time),
        (time(9, 30, tzinfo=UTC), time),
        (timedelta(days=1, seconds=2, microseconds=3), timedelta),
        (-timedelta(microseconds=1), timedelta),
        (timedelta.max, timedelta),
        (timedelta.min, timedelta),
        (MY_ID, UUID),
        (b"", bytes),
        (bytes(range(256)), bytes),
        ([PRICE, None], list[Decimal | None]),
        ({"a": {"b": (PRICE, b"x")}}, dict[str, dict[str, tuple[Decimal, bytes]]]),
        ({"total": PRICE}, Receipt),
        (Line(PRICE, 2), Line),
        (BILL, Bill),
        ((BILL,), tuple[Bill, ...]),
        (Invoice(id=MY_ID, bills=[PAID], left=timedelta(seconds=1)), Invoice),
        (Strict(at=MORNING, scan=b"\x00\xff"), Strict),
        (PRICE, Decimal | None),
        (PRICE, Decimal | float),
        (2.5, Decimal | float),
        (PRICE, Annotated[Decimal, "a note"]),
        (date(2026, 3, 1), date | datetime),
        (MORNING, date | datetime),
        ([MY_ID, PRICE, MORNING], list[UUID | Decimal | datetime]),
    ],
    ids=str,
)
def test_what_json_has_no_form_for_comes_back_by_its_annotation(value, annotation):
    found = decode(encode(value, annotation), annotation)

    assert (type(value), value) == (type(found), found)
    assert encode(value, annotation) == encode(found, annotation)


@pytest.mark.parametrize(
    ("value", "annotation", "path", "kind"),
    [
        (PRICE, None, "$", "Decimal"),
        (MORNING, None, "$", "datetime"),
        (date(2026, 3, 1), Any, "$", "date"),
        (b"x", object, "$", "bytes"),
        ({"a": [1, PRICE]}, dict, "$.a[1]", "Decimal"),
        ({"a": "1.5", "b": MY_ID}, dict[str, Any], "$.b", "UUID"),
        (BILL, None, "$.price", "Decimal"),
        ([PRICE, MORNING], tuple[Decimal, Any], "$[1]", "datetime"),
    ],
    ids=str,
)
def test_what_no_annotation_brings_back_is_refused_with_what_to_do(
    value, annotation, path, kind
):
    with pytest.raises(Unstorable) as refused:
        encode(value, annotation)

    assert path == refused.value.path
    assert f"field as {kind}" in str(refused.value)


@pytest.mark.parametrize(
    ("value", "annotation", "why"),
    [
        (Decimal("NaN"), Decimal, "only where it is a number"),
        (Decimal("sNaN"), Decimal, "only where it is a number"),
        (Decimal("Infinity"), Decimal, "only where it is a number"),
        (PRICE, int, "does not fit its annotation"),
        (PRICE, str | Decimal, "cannot be told apart"),
        (time(9, tzinfo=ZoneInfo("Europe/Lisbon")), time, "its time zone has no offset"),
        (bytearray(b"x"), bytes, "JSON has no form for bytearray"),
        ({1, 2}, set[int], "JSON has no form for set"),
    ],
    ids=str,
)
def test_what_would_come_back_as_something_else_is_refused(value, annotation, why):
    with pytest.raises(Unstorable, match=why):
        encode(value, annotation)


def test_a_model_with_bytes_that_are_no_text_is_refused_with_what_to_set():
    with pytest.raises(Unstorable, match="ser_json_bytes"):
        encode(Invoice(id=MY_ID, bills=[BILL]), Invoice)


def test_a_time_zone_comes_back_as_its_offset():
    at = datetime(2026, 7, 1, 9, tzinfo=ZoneInfo("Europe/Lisbon"))

    found = decode(encode(at, datetime), datetime)

    assert at == found
    assert timezone(timedelta(hours=1)) == found.tzinfo


class Fruit(Enum):
    APPLE = "apple"
    POMME = "apple"  # noqa: PIE796  # the point of a test


class Level(IntEnum):
    LOW = 1


def test_an_enum_is_stored_by_its_value_and_an_alias_comes_back_as_its_first_name():
    assert '["apple","apple",1]' == encode([Fruit.POMME, Fruit.APPLE, Level.LOW])
    assert Fruit.APPLE is decode(encode(Fruit.POMME), Fruit)
    assert Level.LOW is decode(encode(Level.LOW), Level)
    assert Level.LOW is decode(encode(Level.LOW), Level | None)


def test_without_an_annotation_a_dataclass_comes_back_as_plain_json():
    assert {"name": "apple", "price": 1.5, "tags": ["red", "round"]} == decode(encode(APPLE))


def test_a_pydantic_model_is_stored_in_its_json_form_under_its_own_names():
    assert {"at": "2026-11-15T00:00:00Z", "price": "1.10", "pageUrl": "é"} == decode(
        encode(MODEL)
    )


def test_subclasses_of_json_types_are_stored_as_what_they_are():
    class Text(str):
        __slots__ = ()

    class Count(int):
        pass

    value = collections.OrderedDict(a=Text("x"), b=Count(3), c=collections.Counter("aab"))

    assert '{"a":"x","b":3,"c":{"a":2,"b":1}}' == encode(value)


def test_a_dataclass_is_one_level_deep_like_the_object_it_becomes():
    chain: Node | None = None
    for _ in range(codec.MAX_DEPTH):
        chain = Node(chain)

    assert chain == decode(encode(chain), Node)
    with pytest.raises(Unstorable, match="nested deeper"):
        encode(Node(chain))


@given(
    st.builds(
        Order,
        st.integers(),
        st.lists(
            st.builds(
                Item,
                name=texts,
                price=st.floats(allow_nan=False, allow_infinity=False),
                tags=st.lists(texts).map(tuple),
            )
        ),
        st.none() | st.sampled_from(Colour),
    )
)
def test_e22_a_dataclass_comes_back_equal(order):
    assert order == decode(encode(order), Order)


def test_fields_that_were_not_stored_take_their_defaults():
    assert Item(name="pear") == decode('{"name":"pear"}', Item)


@dataclass
class Lost:
    where: "Nowhere"  # type: ignore[name-defined]  # noqa: F821  # the point of a test


@dataclass
class Choosy:
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("n is never negative")


@pytest.mark.parametrize(
    ("text", "annotation", "path", "why"),
    [
        ("{", None, "$", "not JSON"),
        ("", None, "$", "not JSON"),
        ("1 2", None, "$", "not JSON"),
        ("[NaN]", None, "$", "NaN is not a number JSON knows"),
        ("9" * 5_000, None, "$", "not JSON that can be read"),
        ("[" * 200_000, None, "$", "not JSON that can be read"),
        ('"1"', int, "$", "expected a whole number, found '1'"),
        ("1.5", int, "$", "expected a whole number"),
        ("1", str, "$", "expected text"),
        ("0", bool, "$", "expected true or false"),
        ("0", type(None), "$", "expected null"),
        ("{}", list[int], "$", "expected a list"),
        ('[1,"x"]', list[int], "$[1]", "expected a whole number"),
        (
            '{"a":{"b c":[1]}}',
            dict[str, dict[str, list[str]]],
            "$.a['b c'][0]",
            "expected text",
        ),
        ("[1]", tuple[int, int], "$", "expected a list of 2, found one of 1"),
        ("[1]", Item, "$", "expected the fields of Item"),
        ("{}", Item, "$", "Item lacks name"),
        ('{"name":"a","weight":1}', Item, "$", "Item has no 'weight'"),
        ('{"id":1,"items":[{"name":2}]}', Order, "$.items[0].name", "expected text"),
        ('{"id":1,"items":[],"total":3.0}', Order, "$", "Order has no 'total'"),
        ("{}", Person, "$", "Person lacks name"),
        ('"green"', Colour, "$", "'green' is not a valid Colour"),
        ('"c"', Literal["a", "b"], "$", "expected one of"),
        ("true", Literal[1], "$", "expected one of"),
        ("[]", int | str, "$", "expected int | str"),
        ('{"name":"x"}', Cat | Dog, "$", "fits more than one arm"),
        ('{"at":"x","price":1,"pageUrl":""}', Model, "$", "refused it"),
        ('{"n":-1}', Choosy, "$", "n is never negative"),
        ("1", datetime, "$", 'expected a datetime as text, such as "2026-'),
        ('"2026-03-01"', datetime, "$", "expected a datetime as text"),
        ('"2026-13-01"', date, "$", "expected a date as text"),
        ('"20260301"', date, "$", "expected a date as text"),
        ('"9"', time, "$", "expected a time as text"),
        ("12.5", Decimal, "$", "expected a Decimal as text"),
        ('"NaN"', Decimal, "$", "expected a Decimal as text"),
        ('"1_000"', Decimal, "$", "expected a Decimal as text"),
        ('"1E+99999999999999999999"', Decimal, "$", "expected a Decimal as text"),
        ('"P"', timedelta, "$", "expected a timedelta as text"),
        ('"PT"', timedelta, "$", "expected a timedelta as text"),
        ('"P9999999999D"', timedelta, "$", "expected a timedelta as text"),
        ('"0f8fad5bd9cb469fa16570867728950e"', UUID, "$", "expected a UUID as text"),
        ('"paid!"', bytes, "$", "expected a bytes as text"),
        ('["1.5","x"]', list[Decimal], "$[1]", "expected a Decimal as text"),
        ('"1.5"', str | Decimal, "$", "str and Decimal are both text in JSON"),
        ('"1.5"', bytes | Annotated[Decimal, "a note"], "$", "bytes and Decimal are both"),
        ("1", Handle, "$", "no way to make Handle from JSON"),
        ("{}", dict[int, str], "$", "no way to make"),
        ("1", "int", "$", "no way to make int from JSON"),
        ('{"where":1}', Lost, "$", "an annotation of Lost names nothing"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_text_of_another_shape_is_refused_with_its_place(text, annotation, path, why):
    with pytest.raises(Undecodable) as refused:
        decode(text, annotation)

    assert path == refused.value.path
    assert why in str(refused.value)


def test_spaces_around_a_text_written_by_hand_do_no_harm():
    assert {"a": 1} == decode(' {"a": 1}\n')
