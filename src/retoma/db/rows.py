"""Read rows as tuples, or as objects of a class: `tx.all(statement, into=Class)`.

`into` is a dataclass or a NamedTuple, whose fields stand in the order of the columns, or the type of a
single value (`into=int`). A field that is such a class itself takes as many columns as that has fields. The annotation of a field says how its value is read; `Annotated[Any, read]`
names a function for it. This is the only place that
knows where SQLite and PostgreSQL give different values: SQLite keeps a bool as 0 or 1, a time as
microseconds, and a date, a decimal and json as text.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from types import UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Protocol,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

SQL_contra = TypeVar("SQL_contra", contravariant=True)  # what may be asked
T = TypeVar("T")
Row = tuple[Any, ...]
Read = Callable[[Any], Any]  # a value that is not NULL, as Python has it

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# What Python's calendar cannot hold is read as its first or last day, with room for any time zone:
# one row that somebody wrote by hand must not keep a whole list from being read.
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)


class Rows(Protocol[SQL_contra]):
    """What answers statements with rows. Who implements it writes `ask`."""

    def ask(self, statement: SQL_contra, params: dict[str, Any]) -> list[Row]:
        """Run the statement; the rows of its last part that returns any."""

    @overload
    def one(self, statement: SQL_contra, /, *, into: type[T], **params: Any) -> T | None: ...
    @overload
    def one(self, statement: SQL_contra, /, **params: Any) -> Row | None: ...
    def one(self, statement: SQL_contra, /, *, into: type | None = None, **params: Any) -> Any:
        """The first row."""
        rows = self.ask(statement, params)
        if not rows:
            return None
        row = rows[0]
        return row if into is None else row_reader(statement, into, len(row))(row)

    @overload
    def all(self, statement: SQL_contra, /, *, into: type[T], **params: Any) -> list[T]: ...
    @overload
    def all(self, statement: SQL_contra, /, **params: Any) -> list[Row]: ...
    def all(self, statement: SQL_contra, /, *, into: type | None = None, **params: Any) -> Any:
        """All rows."""
        rows = self.ask(statement, params)
        return rows if into is None else read_rows(statement, into, rows)


def read_rows(statement: object, into: type[T], rows: Sequence[Row]) -> list[T]:
    """Make an object of each row. Raises TypeError where the number of columns is not that of its fields."""
    return [*map(row_reader(statement, into, len(rows[0])), rows)] if rows else []  # type: ignore[arg-type]


@lru_cache(maxsize=2_000)  # a caller may make statements without end
def row_reader(statement: object, into: type, width: int) -> Callable[[Row], Any]:
    """Compile how rows of a statement become objects: a dataclass, a NamedTuple, or a single value.

    Compiled, as dataclasses compile their methods: a loop over the fields of a job takes longer than
    making the job.
    """
    used: dict[str, Any] = {}
    if _fields(into) is None:
        text = _value(reader(into), 0, used)
    else:
        text, end = _call(into, 0, width, used)
        if end != width:
            raise TypeError(
                f"{getattr(statement, 'name', statement)} returns {width} columns, and"
                f" {into.__name__} is made of other ones: {', '.join(_fields(into) or ())}"
            )
    read: Callable[[Row], Any] = eval(f"lambda row: {text}", used)  # noqa: S307 — all of it is made here
    return read


def _call(into: type, at: int, width: int, used: dict[str, Any]) -> tuple[str, int]:
    """The text that makes an object of the columns from `at` on, and where it ends."""
    hints = get_type_hints(into, include_extras=True)
    by_name = is_dataclass(into) and any(each.kw_only for each in fields(into))
    values = []
    for name, has_default in (_fields(into) or {}).items():
        if at >= width and has_default:
            break
        hint = hints[name]
        if isinstance(hint, type) and _fields(hint) is not None:
            value, at = _call(hint, at, width, used)
        else:
            value, at = _value(reader(hint), at, used), at + 1
        values.append(f"{name}={value}" if by_name else value)
    return f"{_named(into, used)}({', '.join(values)})", at


def _value(read: Read | None, at: int, used: dict[str, Any]) -> str:
    column = f"row[{at}]"
    if read is None:
        return column
    return f"(None if {column} is None else {_named(read, used)}({column}))"


def _named(value: Any, used: dict[str, Any]) -> str:
    """A name for a value that a compiled text uses."""
    name = f"x{len(used)}"
    used[name] = value
    return name


def _fields(kind: type) -> dict[str, bool] | None:
    """The fields that a class is made of, and whether each has a default; None: it has no fields."""
    if is_dataclass(kind):
        return {
            each.name: not each.default is each.default_factory is MISSING
            for each in fields(kind)
            if each.metadata.get("column", True)
        }
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return {name: name in kind._field_defaults for name in kind._fields}  # type: ignore[attr-defined]
    return None


def reader(hint: Any) -> Read | None:
    """How a value of this annotation is read; None: both databases give it as it is."""
    if get_origin(hint) is Annotated:
        return next(
            (each for each in hint.__metadata__ if callable(each)), reader(hint.__origin__)
        )
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


def read_time(value: int | str | datetime | None) -> datetime | None:
    """Read a time that a table or a view gives: a view of SQLite's gives text."""
    if isinstance(value, int):
        return from_microseconds(value)
    return (
        datetime.fromisoformat(value).replace(tzinfo=UTC) if isinstance(value, str) else value
    )


@overload
def moment(value: int | datetime) -> datetime: ...
@overload
def moment(value: None) -> None: ...
def moment(value: int | datetime | None) -> datetime | None:
    """Read a time that a table gives: SQLite's give microseconds."""
    return from_microseconds(value) if isinstance(value, int) else value


def from_microseconds(value: int) -> datetime:
    """Return the time so long after 1970; one that Python's calendar cannot hold is at its end."""
    if not EARLIEST_MICROSECONDS <= value <= LATEST_MICROSECONDS:
        return LATEST if value > 0 else EARLIEST
    return EPOCH + timedelta(microseconds=value)


def microseconds(at: datetime) -> int:
    """The other way: SQLite stores times as microseconds since 1970, UTC."""
    return (at - EPOCH) // timedelta(microseconds=1)


EARLIEST_MICROSECONDS, LATEST_MICROSECONDS = microseconds(EARLIEST), microseconds(LATEST)


def seconds_between(
    earlier: int | datetime | None, later: int | datetime | None
) -> float | None:
    """Count the seconds between two times as a database gives them; None where one is missing."""
    if earlier is None or later is None:
        return None
    return (moment(later) - moment(earlier)).total_seconds()


def seconds_until(at: int | datetime | None, now: int | datetime | None) -> float | None:
    """Count the seconds from now to a time; none are left where it has passed."""
    left = seconds_between(now, at)
    return None if left is None else max(left, 0.0)


def _read_date(value: Any) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


def _read_number(value: Any) -> float:
    """Read a number, which PostgreSQL may give as a Decimal; a whole one stays whole."""
    return value if isinstance(value, int) else float(value)


Json = Annotated[Any, read_json]  # a column of json whose values have no type
# The metadata of a field that is not read from a row, but counted apart.
NO_COLUMN: Final[Mapping[str, bool]] = {"column": False}

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
