"""An item against the profile: what may be stored, and what is wrong with the rest, one by one."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import count
from types import NoneType
from typing import Any, Final
from uuid import UUID

from retoma.services.writer.items import Bad, Found
from retoma.services.writer.model import (
    BEGINNING,
    DATA,
    Column,
    FailedItem,
    Family,
    Profile,
)

Check = Callable[[Any], str | None]  # what is wrong with a value
# An item: its place in the source, its value, and its text where that is what is to be stored.
Row = tuple[int, dict[str, Any], str | None]
MOST_SHAPES: Final = 1_000  # sets of fields that are remembered
MOST_TYPES: Final = 100  # of each
# How JSON writes a NUL, and halves of surrogate pairs; a raw one of either is no JSON.
ODD: Final = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


@dataclass(slots=True)
class Group:
    """Items that follow each other: those to be stored, by the columns they name; those not."""

    start: int
    count: int
    by_columns: dict[tuple[str, ...], list[Row]] = field(default_factory=dict)
    failed: list[FailedItem] = field(default_factory=list)

    @property
    def rows(self) -> list[tuple[tuple[str, ...], Row]]:
        return [(columns, row) for columns, rows in self.by_columns.items() for row in rows]


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the names of an item's fields tell, whatever their values are."""

    columns: tuple[str, ...]
    unknown: tuple[str, ...]
    problem: str | None
    checks: tuple[Check, ...]  # of its values, in the order in which they come
    deep: tuple[tuple[int, Check], ...]  # those that ask for more than a type, by their place
    # Types of values that were well, each with the looks that others of these types still need.
    types: dict[tuple[type, ...], tuple[tuple[int, Check], ...]] = field(default_factory=dict)


class Checker:
    """Sorts the items of one profile."""

    def __init__(self, profile: Profile) -> None:
        self._key = profile.conflict_key
        self._rest = profile.rest
        self._known = {each.name: each for each in profile.columns}
        self._checks = {name: self._check_of(each) for name, each in self._known.items()}
        self._needed = [
            each.name for each in profile.columns if each.needed or each.name == self._key
        ]
        self._by_uuid = self._known[self._key].family is Family.UUID
        self._shapes: dict[tuple[str, ...], _Shape] = {}

    def sort(self, start: int, found: Sequence[Found]) -> Group:
        group = Group(start, len(found))
        seen: set[Any] = set()
        for index, (value, text) in zip(count(start), found, strict=False):
            if type(value) is not dict:
                group.failed.append(_no_object(index, value))
                continue
            shape = self._shape(value)
            why = shape.problem or self._flaw(value, text, shape) or self._twice(value, seen)
            if why is not None:
                group.failed.append(FailedItem(index, shown(value, self._key), why))
                continue
            row: Row = (index, value, text)
            if shape.unknown:
                row = (index, self._with_rest(value, shape), None)
            group.by_columns.setdefault(shape.columns, []).append(row)
        return group

    def _flaw(self, item: Mapping[str, Any], text: str, shape: _Shape) -> str | None:
        """What is wrong with the first value that is. Items are much alike: of one whose values
        have types that were well before, and no odd character, only some need a second look."""
        values = tuple(item.values())
        types = tuple(map(type, values))
        looks = shape.types.get(types)
        if looks is not None and not ODD.search(text):
            for at, check in looks:
                if check(values[at]) is not None:
                    break
            else:
                return None
        flaws = zip(item, shape.checks, values, strict=True)
        why = next((f"{name} {why}" for name, it, told in flaws if (why := it(told))), None)
        if why is None and len(shape.types) < MOST_TYPES:
            shape.types[types] = tuple(
                (at, check) for at, check in shape.deep if types[at] is not NoneType
            )
        return why

    def _twice(self, item: Mapping[str, Any], seen: set[Any]) -> str | None:
        key = UUID(item[self._key]) if self._by_uuid else item[self._key]
        if key in seen:
            return (
                f"{self._key} {str(key)[:100]!r} is in this group already; the first was taken"
            )
        seen.add(key)
        return None

    def _with_rest(self, item: dict[str, Any], shape: _Shape) -> dict[str, Any]:
        kept = {name: value for name, value in item.items() if name in self._known}
        kept[str(self._rest)] = {name: item[name] for name in shape.unknown}
        return kept

    def _shape(self, item: dict[str, Any]) -> _Shape:
        names = tuple(item)
        shape = self._shapes.get(names)
        if shape is None:
            if len(self._shapes) >= MOST_SHAPES:
                self._shapes.clear()
            shape = self._shapes[names] = self._shape_of(names)
        return shape

    def _shape_of(self, names: tuple[str, ...]) -> _Shape:
        unknown = tuple(name for name in names if name not in self._known)
        columns = [name for name in self._known if name in names]
        problem = None
        for name in self._needed:
            if name not in names and name != self._rest:
                problem = problem or f"{name} is missing"
        if unknown and self._rest is None:
            problem = problem or f"the profile has no column for {_listed(unknown)}"
        elif unknown and self._rest in names:
            problem = problem or f"{self._rest} is where unknown fields go: {_listed(unknown)}"
        elif unknown:
            columns.append(str(self._rest))
        checks = tuple(self._checks.get(name, _anything) for name in names)
        deep = tuple(
            (at, _inner(self._known[name], is_key=name == self._key))
            for at, name in enumerate(names)
            if name in self._known and not self._known[name].by_type
        )
        return _Shape(tuple(sorted(columns)), unknown, problem, checks, deep)

    def _check_of(self, column: Column) -> Check:
        is_key = column.name == self._key
        inner = _inner(column, is_key=is_key)
        null = None if column.nullable and not is_key else "is null"
        return lambda value: null if value is None else inner(value)


# — what a value of each family must be —


def _inner(column: Column, *, is_key: bool) -> Check:
    match column.family:
        case Family.TEXT:
            return lambda value: _text(value, column.most)
        case Family.INTEGER:
            return lambda value: _whole(value, column.most)
        case Family.NUMBER:
            return _number
        case Family.BOOLEAN:
            return _truth
        case Family.INSTANT:
            return lambda value: _read(value, datetime.fromisoformat, "is not an instant")
        case Family.DATE:
            return lambda value: _read(value, date.fromisoformat, "is not a date")
        case Family.UUID:
            return lambda value: _read(value, UUID, "is not a UUID")
        case Family.JSON | Family.OTHER:
            return _simple if is_key else _anything


def _text(value: Any, most: int | None) -> str | None:
    if type(value) is not str:
        return "is not a text"
    if most is not None and len(value) > most:
        return f"is longer than {most} characters"
    return _unstorable(value)


def _unstorable(text: str) -> str | None:
    if "\0" in text:
        return "has a NUL character"
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return "has half a surrogate pair"
    return None


def _whole(value: Any, most: int | None) -> str | None:
    if type(value) is not int:
        return "is not a whole number"
    if most is not None and not -most - 1 <= value <= most:
        return "is too large"
    return None


def _number(value: Any) -> str | None:
    if type(value) is int or (type(value) is float and abs(value) != float("inf")):
        return None
    return "is not a number"


def _truth(value: Any) -> str | None:
    return None if type(value) is bool else "is neither true nor false"


def _read(value: Any, reader: Callable[[str], object], why: str) -> str | None:
    if type(value) is not str or not value.isascii():
        return why
    try:
        reader(value)
    except ValueError:
        return why
    return None


def _simple(value: Any) -> str | None:
    if type(value) is str:
        return _unstorable(value)
    return None if type(value) is int else "is neither a text nor a whole number"


def _anything(_: Any) -> str | None:
    return None  # the database says itself


# — what is kept of one that failed —


def shown(item: Any, key: str) -> Any:
    """An item as it came; of one that is too large, or cannot be kept, how it begins."""
    try:
        text = json.dumps(item, allow_nan=False)
        json.dumps(item, ensure_ascii=False).encode()
        if len(text) <= DATA and "\\u0000" not in text:
            return item
    except (ValueError, RecursionError):
        text = ascii(item)
    found = item.get(key) if isinstance(item, dict) else None
    named = {key: found} if type(found) is int and abs(found) < 2**63 else {}
    return {**named, "_beginning": text[:BEGINNING]}


def _no_object(index: int, value: Any) -> FailedItem:
    if isinstance(value, Bad):
        beginning = value.beginning.encode("ascii", "backslashreplace").decode()
        return FailedItem(index, {"_beginning": beginning}, value.why)
    return FailedItem(index, shown(value, ""), "it is no object")


def _listed(names: Sequence[str]) -> str:
    told = ", ".join(repr(name[:100]) for name in sorted(names)[:5])
    return told if len(names) <= 5 else f"{told} and {len(names) - 5} more"
