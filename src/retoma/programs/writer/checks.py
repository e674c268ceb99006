"""An item against the profile: what may be stored, and what is wrong with the rest, one by one."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from types import NoneType
from typing import Any, Final
from uuid import UUID

from retoma.programs.writer.items import Bad, Found
from retoma.programs.writer.model import (
    BEGINNING,
    DATA,
    Column,
    FailedItem,
    Family,
    Profile,
)

Check = Callable[[Any], str | None]  # what is wrong with a value
Look = Callable[[Sequence[Any]], bool]  # whether nothing is with any of these
# An item: its place in the source, its value, and its text where that is what is to be stored.
Row = tuple[int, dict[str, Any], str | None]
MOST_SHAPES: Final = 1_000  # sets of fields that are remembered
TOGETHER: Final = 200  # items: one bad one among them, and all of them are looked at one by one
INFINITY: Final = float("inf")
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
    looks: tuple[Look, ...]  # at the same values of many items


class Checker:
    """Sorts the items of one profile."""

    def __init__(self, profile: Profile) -> None:
        self._key = profile.conflict_key
        self._rest = profile.rest
        self._known = {each.name: each for each in profile.columns}
        self._checks = {name: self._check_of(each) for name, each in self._known.items()}
        self._looks = {name: self._look_of(each) for name, each in self._known.items()}
        self._needed = [
            each.name for each in profile.columns if each.needed or each.name == self._key
        ]
        self._by_uuid = self._known[self._key].family is Family.UUID
        self._shapes: dict[tuple[str, ...], _Shape] = {}

    def sort(self, start: int, found: Sequence[Found]) -> Group:
        """Items are much alike: some of one shape are looked at together, one column of values
        after the other, and one by one only where that has not found all of them well."""
        group = Group(start, len(found))
        by_names: defaultdict[tuple[str, ...], list[Row]] = defaultdict(list)
        for index, (value, text) in enumerate(found, start):
            if type(value) is dict:
                by_names[tuple(value)].append((index, value, text))
            else:
                group.failed.append(_no_object(index, value))
        for names, rows in by_names.items():
            shape = self._shape(names)
            good = group.by_columns.setdefault(shape.columns, [])
            for at in range(0, len(rows), TOGETHER):
                some = rows[at : at + TOGETHER]
                good += some if _all_well(some, shape) else self._sifted(some, shape, group)
        self._drop_twice(group)
        return group

    def _sifted(self, rows: Sequence[Row], shape: _Shape, group: Group) -> list[Row]:
        good: list[Row] = []
        for row in rows:
            index, item, _ = row
            why = shape.problem or _flaw(item, shape)
            if why is not None:
                group.failed.append(self._failed(row, why))
            elif shape.unknown:
                good.append((index, self._with_rest(item, shape), None))
            else:
                good.append(row)
        return good

    def _drop_twice(self, group: Group) -> None:
        """Of those that have the same key only the first in the source is taken."""
        rows = [row for rows in group.by_columns.values() for row in rows]
        keys = [row[1][self._key] for row in rows]
        if self._by_uuid:
            keys = [*map(UUID, keys)]
        if len({*keys}) == len(rows):
            return
        seen: set[Any] = set()
        late: set[int] = set()
        for row, key in sorted(zip(rows, keys, strict=True), key=lambda each: each[0][0]):
            if key in seen:
                why = f"{self._key} {str(key)[:100]!r} is in this group already; the first was taken"
                group.failed.append(self._failed(row, why))
                late.add(row[0])
            seen.add(key)
        for columns, some in group.by_columns.items():
            group.by_columns[columns] = [row for row in some if row[0] not in late]

    def _failed(self, row: Row, why: str) -> FailedItem:
        return FailedItem(row[0], shown(row[1], self._key), why)

    def _with_rest(self, item: dict[str, Any], shape: _Shape) -> dict[str, Any]:
        kept = {name: value for name, value in item.items() if name in self._known}
        kept[str(self._rest)] = {name: item[name] for name in shape.unknown}
        return kept

    def _shape(self, names: tuple[str, ...]) -> _Shape:
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
        looks = tuple(self._looks.get(name, _unseen) for name in names)
        return _Shape(tuple(sorted(columns)), unknown, problem, checks, looks)

    def _check_of(self, column: Column) -> Check:
        is_key = column.name == self._key
        inner = _inner(column, is_key=is_key)
        null = None if column.nullable and not is_key else "is null"
        return lambda value: null if value is None else inner(value)

    def _look_of(self, column: Column) -> Look:
        is_key = column.name == self._key
        inner = _look(column, is_key=is_key)
        nullable = column.nullable and not is_key

        def look(values: Sequence[Any]) -> bool:
            types = {*map(type, values)}
            if NoneType in types:
                types.discard(NoneType)
                values = [value for value in values if value is not None]
                if not nullable or not values:
                    return nullable
            return inner(values, types)

        return look


def _all_well(rows: Sequence[Row], shape: _Shape) -> bool:
    """Whether all of them may be stored as they came; False says nothing of any one of them."""
    if shape.problem or shape.unknown or any(ODD.search(text or "") for _, _, text in rows):
        return False
    columns = zip(*(item.values() for _, item, _ in rows), strict=True)
    return all(look(values) for look, values in zip(shape.looks, columns, strict=True))


def _flaw(item: Mapping[str, Any], shape: _Shape) -> str | None:
    """What is wrong with the first value that is."""
    for name, check, value in zip(item, shape.checks, item.values(), strict=True):
        if (why := check(value)) is not None:
            return f"{name} {why}"
    return None


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


# — the same of many values at once, none of them null —


def _look(column: Column, *, is_key: bool) -> Callable[[Sequence[Any], set[type]], bool]:
    most = column.most
    match column.family:
        case Family.TEXT:
            return lambda values, types: types == {str} and _no_longer(values, most)
        case Family.INTEGER:
            return lambda values, types: types == {int} and _no_larger(values, most)
        case Family.NUMBER:
            return lambda values, types: types <= {int, float} and _finite(values)
        case Family.BOOLEAN:
            return lambda _, types: types == {bool}
        case Family.INSTANT:
            return lambda values, types: (
                types == {str} and _legible(values, datetime.fromisoformat)
            )
        case Family.DATE:
            return lambda values, types: types == {str} and _legible(values, date.fromisoformat)
        case Family.UUID:
            return lambda values, types: types == {str} and _legible(values, UUID)
        case Family.JSON | Family.OTHER:
            return lambda _, types: not is_key or types <= {str, int}


def _no_longer(values: Sequence[str], most: int | None) -> bool:
    return most is None or max(map(len, values)) <= most


def _no_larger(values: Sequence[int], most: int | None) -> bool:
    return most is None or (-most - 1 <= min(values) and max(values) <= most)


def _finite(values: Sequence[float]) -> bool:
    return min(values) > -INFINITY and max(values) < INFINITY


def _legible(values: Sequence[str], reader: Callable[[str], object]) -> bool:
    try:
        return all(map(str.isascii, values)) and all(map(reader, values))
    except ValueError:
        return False


def _unseen(_: Sequence[Any]) -> bool:
    return True


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
