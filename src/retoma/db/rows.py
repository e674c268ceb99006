"""Read rows as tuples, or as objects of a class: `tx.all(statement, into=Class)`.

`into` is a dataclass or a NamedTuple, whose fields stand in the order of the columns, or the type of a
single value (`into=int`). The annotation of a field says how its value is read. This is the only place that
knows where SQLite and PostgreSQL give different values: SQLite keeps a bool as 0 or 1, a time as
microseconds, and a date, a decimal and json as text.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache
from itertools import starmap
from types import UnionType
from typing import (
    Any,
    Final,
    NamedTuple,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

S_contra = TypeVar("S_contra", contravariant=True)  # what may be asked
T = TypeVar("T")
Row = tuple[Any, ...]
Read = Callable[[Any], Any]  # a value that is not NULL, as Python has it

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What Python's calendar cannot hold is read as its first or last day, with room for any time zone:
# one row that somebody wrote by hand must not keep a whole list from being read.
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)


class Rows(Protocol[S_contra]):
    """What answers statements with rows. Who implements it writes `ask`."""

    def ask(self, statement: S_contra, params: dict[str, Any]) -> list[Row]:
        """Run the statement; the rows of its last part that returns any."""

    @overload
    def one(self, statement: S_contra, *, into: type[T], **params: Any) -> T | None: ...
    @overload
    def one(self, statement: S_contra, **params: Any) -> Row | None: ...
    def one(self, statement: S_contra, *, into: type | None = None, **params: Any) -> Any:
        """The first row."""
        rows = self.ask(statement, params)
        if not rows:
            return None
        return rows[0] if into is None else read_rows(statement, into, rows[:1])[0]

    @overload
    def all(self, statement: S_contra, *, into: type[T], **params: Any) -> list[T]: ...
    @overload
    def all(self, statement: S_contra, **params: Any) -> list[Row]: ...
    def all(self, statement: S_contra, *, into: type | None = None, **params: Any) -> Any:
        """All rows."""
        rows = self.ask(statement, params)
        return rows if into is None else read_rows(statement, into, rows)


class Shape(NamedTuple):
    """How rows become objects of a class."""

    make: Callable[..., Any]
    names: Sequence[str]  # its fields; none: a single value, the first column
    least: int  # fields without a default
    reads: Sequence[
        tuple[int, Read]
    ]  # by position: columns that the databases give differently
    by_name: bool


def read_rows(statement: object, into: type[T], rows: Sequence[Row]) -> list[T]:
    """Make an object of each row. Raises TypeError where the number of columns is not that of its fields."""
    if not rows:
        return []
    shape = shape_of(cast("Any", into))
    width = len(rows[0])
    if not shape.least <= width <= (len(shape.names) or width):
        raise TypeError(
            f"{getattr(statement, 'name', statement)} returns {width} columns, and {into.__name__} has"
            f" {len(shape.names)} fields: {', '.join(shape.names)}"
        )
    if not shape.names:
        [(_, read)] = shape.reads or [(0, _same)]
        return [cast("T", None if row[0] is None else read(row[0])) for row in rows]
    reads = [each for each in shape.reads if each[0] < width]
    converted = [_convert(reads, row) for row in rows] if reads else rows
    if shape.by_name:
        return [shape.make(**dict(zip(shape.names, row, strict=False))) for row in converted]
    return list(starmap(shape.make, converted))


@cache
def shape_of(into: type) -> Shape:
    """How rows are read into this class: a dataclass, a NamedTuple, or the type of a single value."""
    if is_dataclass(into):
        listed = [each for each in fields(into) if each.init]
        names = [each.name for each in listed]
        least = sum(each.default is each.default_factory is MISSING for each in listed)
        by_name = any(each.kw_only for each in listed)
    elif issubclass(into, tuple):
        names = list(into._fields)  # type: ignore[attr-defined]
        least, by_name = len(names) - len(into._field_defaults), False  # type: ignore[attr-defined]
    else:
        read = reader(into)
        return Shape(into, (), 1, () if read is None else ((0, read),), by_name=False)
    hints = get_type_hints(into)
    reads = [(at, reader(hints[name])) for at, name in enumerate(names)]
    different = tuple((at, read) for at, read in reads if read is not None)
    return Shape(into, tuple(names), least, different, by_name)


def reader(hint: Any) -> Read | None:
    """How a value of this annotation is read; None: both databases give it as it is."""
    if get_origin(hint) in (Union, UnionType):
        found = [reader(each) for each in get_args(hint) if each is not type(None)]
        return found[0] if len(found) == 1 else None
    kind = get_origin(hint) or hint
    if not isinstance(kind, type):
        return None
    if issubclass(kind, Enum):
        return kind
    return READERS.get(kind)


def read_json(value: Any) -> Any:
    """Read a json column, which a view may have read already."""
    return json.loads(value) if isinstance(value, str) else value


def read_time(value: Any) -> datetime | None:
    """Read a time: SQLite's tables give a number, its views text."""
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=UTC)
    return moment(value)


def moment(value: int | datetime | None) -> datetime | None:
    """A time as the database gives it (SQLite: microseconds), as an aware datetime."""
    if not isinstance(value, int):
        return value
    if not EARLIEST_MICROSECONDS <= value <= LATEST_MICROSECONDS:
        return LATEST if value > 0 else EARLIEST
    return EPOCH + timedelta(microseconds=value)


def microseconds(at: datetime) -> int:
    """The other way: SQLite stores times as microseconds since 1970, UTC."""
    return (at - EPOCH) // timedelta(microseconds=1)


EARLIEST_MICROSECONDS, LATEST_MICROSECONDS = microseconds(EARLIEST), microseconds(LATEST)


def _read_date(value: Any) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


def _read_number(value: Any) -> float:
    """Read a number, which PostgreSQL may give as a Decimal; a whole one stays whole."""
    return value if isinstance(value, int) else float(value)


def _same(value: Any) -> Any:
    return value


def _convert(reads: Sequence[tuple[int, Read]], row: Row) -> list[Any]:
    values = list(row)
    for at, read in reads:
        if values[at] is not None:
            values[at] = read(values[at])
    return values


READERS: Final[Mapping[type, Read]] = {
    bool: bool,
    date: _read_date,
    datetime: read_time,
    Decimal: Decimal,
    float: _read_number,
    bytes: bytes,
    dict: read_json,
    list: read_json,
    Mapping: read_json,
    Sequence: read_json,
    tuple: lambda value: tuple(read_json(value)),
}
