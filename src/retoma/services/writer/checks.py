"""An item against the profile: what may be stored, and what is wrong with the rest, one by one."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import count
from typing import Any, Final
from uuid import UUID

from retoma.services.writer.items import Bad
from retoma.services.writer.model import (
    BEGINNING,
    DATA,
    Column,
    FailedItem,
    Family,
    Profile,
)

Check = Callable[[Any], str | None]  # what is wrong with a value
Row = tuple[int, dict[str, Any]]  # an item and its place in the source
MOST_SHAPES: Final = 1_000  # sets of fields that are remembered


@dataclass(slots=True)
class Batch:
    """Items that follow each other: those to be stored, by the columns they name; those not."""

    start: int
    count: int
    groups: dict[tuple[str, ...], list[Row]] = field(default_factory=dict)
    failed: list[FailedItem] = field(default_factory=list)

    @property
    def rows(self) -> list[tuple[tuple[str, ...], Row]]:
        return [(columns, row) for columns, rows in self.groups.items() for row in rows]


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the names of an item's fields tell, whatever their values are."""

    columns: tuple[str, ...]
    unknown: tuple[str, ...]
    problem: str | None


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
        self._shapes: dict[tuple[str, ...], _Shape] = {}

    def sort(self, start: int, values: Sequence[Any]) -> Batch:
        batch = Batch(start, len(values))
        seen: set[Any] = set()
        for index, value in zip(count(start), values, strict=False):
            if type(value) is not dict:
                batch.failed.append(_no_object(index, value))
                continue
            shape = self._shape(value)
            why = shape.problem or self._flaw(value) or self._twice(value, seen)
            if why is not None:
                batch.failed.append(FailedItem(index, shown(value, self._key), why))
                continue
            row = value if not shape.unknown else self._with_rest(value, shape)
            batch.groups.setdefault(shape.columns, []).append((index, row))
        return batch

    def _flaw(self, item: Mapping[str, Any]) -> str | None:
        checks = self._checks
        for name, value in item.items():
            check = checks.get(name)
            if check is not None and (why := check(value)) is not None:
                return f"{name} {why}"
        return None

    def _twice(self, item: Mapping[str, Any], seen: set[Any]) -> str | None:
        key = item[self._key]
        if self._known[self._key].family is Family.UUID:
            key = UUID(key)
        if key in seen:
            return (
                f"{self._key} {str(key)[:100]!r} is in this batch already; the first was taken"
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
        return _Shape(tuple(sorted(columns)), unknown, problem)

    def _check_of(self, column: Column) -> Check:
        inner = _inner(column, is_key=column.name == self._key)
        if column.nullable and column.name != self._key:
            return lambda value: None if value is None else inner(value)
        return lambda value: "is null" if value is None else inner(value)


# — what a value of each family must be —


def _inner(column: Column, *, is_key: bool) -> Check:
    match column.family:
        case Family.TEXT:
            return lambda value: _text(value, column.most)
        case Family.INTEGER:
            return lambda value: _whole(value, column.most)
        case Family.NUMBER:
            return lambda value: None if _is_number(value) else "is not a number"
        case Family.BOOLEAN:
            return lambda value: None if type(value) is bool else "is neither true nor false"
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


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and abs(value) != float("inf"))


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
