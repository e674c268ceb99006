"""Values to JSON text and back, refusing what a database would refuse.

A refusal must come before the commit: a paid answer that only the database rejects would be
bought again and again (H-X3). What encode() accepts, both databases give back unchanged (E22).
"""

import json
import math
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, Never

MAX_BYTES: Final = 16 * 1024 * 1024  # groups of rows travel as one text; more is evidence
MAX_DEPTH: Final = 100  # SQLite's JSON stops at 1,000, Python's own recursion sometimes before
MAX_DIGITS: Final = 4_300  # Python reads no longer whole number unless told to
TOO_LONG: Final = 10**MAX_DIGITS
SHORT: Final = 2**63  # whole numbers that need no second look

SCALARS: Final = frozenset({str, int, float, bool, type(None)})


class Misfit(ValueError):
    """Something in a value does not fit; `path` says where, from `$` down."""

    def __init__(self, *told: str) -> None:
        super().__init__(*told)
        self.path = "$"

    def lies_under(self, key: object) -> None:
        plain = isinstance(key, str) and key.isidentifier()
        self.path = f"${f'.{key}' if plain else f'[{key!r}]'}{self.path[1:]}"


class Unstorable(Misfit):
    """A value no database could give back unchanged."""

    def __init__(self, value: object, why: str) -> None:
        self.value_repr = _show(value)
        self.why = why
        self.whole: object = value  # all of what was to be stored, for whoever keeps it
        super().__init__(self.value_repr, why)

    def __reduce__(self) -> tuple[object, ...]:
        # Across processes it goes as its words: what cannot be stored can rarely be pickled.
        return _unpickled, (self.value_repr, self.why, self.path, repr(self.whole)[:MAX_BYTES])

    def __str__(self) -> str:
        return f"cannot store {self.value_repr} at {self.path}: {self.why}"


def _unpickled(value_repr: str, why: str, path: str, whole: str) -> Unstorable:
    error = Unstorable(whole, why)
    error.value_repr = value_repr
    error.path = path
    return error


class Undecodable(Misfit):
    """A stored text that is no JSON, or does not have the shape asked for."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(why)

    def __str__(self) -> str:
        return f"cannot read the stored value at {self.path}: {self.why}"


def encode(value: object) -> str:
    """The canonical JSON text: compact, key order kept, characters as they are."""
    if value is None:
        return "null"
    if type(value) is int and -SHORT < value < SHORT:
        return repr(value)
    try:
        return _encoded(value)
    except Unstorable as error:
        error.whole = value
        raise


def _encoded(value: object) -> str:
    if not _is_plain(value, MAX_DEPTH):
        value = _plain(value, MAX_DEPTH)
    try:
        text = TO_TEXT.encode(value)
    except ValueError:
        _plain(value, MAX_DEPTH)
        raise Unstorable(value, "this Python may not write so long a number") from None
    if _is_suspect(text):
        _plain(value, MAX_DEPTH)
    if len(text) > MAX_BYTES // 4 and len(text.encode()) > MAX_BYTES:  # a character is 1 to 4
        raise Unstorable(value, f"its text is over {MAX_BYTES:,} bytes; attach it as evidence")
    return text


def decode(text: str, annotation: Any = None) -> Any:
    """The value again: plain JSON, or rebuilt after a type annotation."""
    try:
        value = _parsed(text)
    except (ValueError, RecursionError) as error:
        raise Undecodable(f"it is not JSON that can be read ({error})") from None
    return value if annotation is None else _reader(annotation)(value)


def digest(text: str) -> str:
    """Equal for equal canonical texts: what an idempotency key is compared by."""
    return sha256(text.encode()).hexdigest()


# --- to text


# Every value has passed _is_plain or _plain, whose depth no cycle survives: none are looked for.
TO_TEXT: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":")
)


def _is_plain(value: Any, depth: int) -> bool:
    """Whether json alone keeps this value's shape; it would turn other keys into text, unasked.

    Every value stored comes by here, so it only says no; _plain then finds out why.
    """
    kind = type(value)
    children: Iterable[object]
    if kind is dict:
        for key in value:
            if type(key) is not str:
                return False
        children = value.values()
    elif kind is list or kind is tuple:
        children = value
    else:
        return kind in SCALARS
    if depth == 0:
        return False
    for child in children:
        if type(child) not in SCALARS and not _is_plain(child, depth - 1):
            return False
    return True


def _is_suspect(text: str) -> bool:
    """Whether a text may hold a NUL, half a surrogate pair or a number nobody else can read."""
    if "\\u0000" in text:
        return True
    if len(text) > MAX_DIGITS and not 0 < sys.get_int_max_str_digits() <= MAX_DIGITS:
        return True
    return not text.isascii() and not _is_unicode(text)


def _plain(value: object, depth: int) -> object:
    """The same value in JSON's own types, or Unstorable naming the first place that has none."""
    match value:
        case Enum():
            return _plain_enum(value)
        case None | bool():
            return value
        case str():
            return _checked_text(value)
        case int():
            return _checked_int(value)
        case float():
            return _checked_float(value)
        case _ if depth > 0:
            return _plain_inside(value, depth)
        case _:
            raise Unstorable(value, f"it is nested deeper than {MAX_DEPTH}")


def _plain_inside(value: object, depth: int) -> object:
    match value:
        case dict():
            return {_checked_key(key): _child(key, value[key], depth) for key in value}
        case list() | tuple():
            return [_child(at, child, depth) for at, child in enumerate(value)]
        case _:
            shown = _opened(value)
            # Its fields are one level, like a dict; whatever else comes out must not go on for ever.
            return _plain(shown, depth if isinstance(shown, dict) else depth - 1)


def _child(key: object, value: object, depth: int) -> object:
    try:
        return _plain(value, depth - 1)
    except Unstorable as error:
        error.lies_under(key)
        raise


def _opened(value: object) -> object:
    """A dataclass by its fields, a Pydantic model by the name of one method."""
    if isinstance(value, type):
        raise Unstorable(value, "it is a class, not a value")
    if is_dataclass(value):
        # What __post_init__ has made it makes again.
        return {field.name: getattr(value, field.name) for field in fields(value) if field.init}
    if not hasattr(value, "model_dump"):
        raise Unstorable(value, f"JSON has no form for {type(value).__qualname__}")
    try:
        return value.model_dump(mode="json", by_alias=True)
    except ValueError as error:
        raise Unstorable(value, f"its model_dump failed ({error})") from error


def _plain_enum(value: Enum) -> object:
    if not isinstance(value.value, str | int):
        raise Unstorable(value, "of enums, JSON has a form for those of text and whole numbers")
    return _plain(value.value, 0)


def _checked_text(value: str) -> str:
    if "\0" in value:
        raise Unstorable(value, "PostgreSQL keeps no text with a NUL in it")
    if not _is_unicode(value):
        raise Unstorable(value, "half a surrogate pair is not a character")
    return value


def _checked_key(key: object) -> str:
    if not isinstance(key, str):
        raise Unstorable(key, "a key must be text; it would come back as text")
    return _checked_text(key.value if isinstance(key, Enum) else key)


def _checked_int(value: int) -> int:
    if abs(value) >= TOO_LONG:
        raise Unstorable(value, f"a whole number has at most {MAX_DIGITS:,} digits")
    return value


def _checked_float(value: float) -> float:
    if not math.isfinite(value):
        raise Unstorable(value, "JSON has no NaN and no infinity")
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _show(value: object) -> str:
    """A short look at a value that may be endless or broken."""
    if isinstance(value, int) and abs(value) >= TOO_LONG:
        return f"a whole number of {value.bit_length():,} bits"
    look = reprlib.Repr()
    look.maxlevel = 3
    look.maxstring = look.maxother = 80
    return look.repr(value)


# --- back from text

Reader = Callable[[Any], Any]  # a JSON value -> the value asked for

LISTS: Final = frozenset({list, Sequence, Collection, Iterable})
OBJECTS: Final = frozenset({dict, Mapping})
PLAIN: Final[Mapping[Any, tuple[tuple[type, ...], str]]] = {
    type(None): ((type(None),), "null"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((float, int), "a number"),  # 1.0 may have been written as 1
    str: ((str,), "text"),
    **dict.fromkeys(LISTS, ((list,), "a list")),
    **dict.fromkeys(OBJECTS, ((dict,), "an object")),
}


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a number JSON knows")


FROM_TEXT: Final = json.JSONDecoder(parse_constant=_no_constant)
SCAN: Final[Any] = FROM_TEXT.scan_once  # type: ignore[attr-defined]  # every value read comes by here


def _parsed(text: str) -> Any:
    try:
        value, end = SCAN(text, 0)
        if end == len(text):
            return value
    except (json.JSONDecodeError, StopIteration):
        pass
    return FROM_TEXT.decode(text)  # passes over spaces, and says what else is wrong


def _reader(annotation: Any) -> Reader:
    try:
        return _known_reader(annotation)
    except TypeError:  # an annotation that cannot be hashed, such as Annotated[int, []]
        return _make_reader(annotation)


@lru_cache(maxsize=1024)
def _known_reader(annotation: Any) -> Reader:
    return _make_reader(annotation)


def _make_reader(annotation: Any) -> Reader:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Annotated, typing.Required, typing.NotRequired}:
        return _reader(arguments[0])
    if isinstance(annotation, typing.NewType):
        return _reader(annotation.__supertype__)
    if origin is typing.Literal:
        return _literal_reader(arguments)
    if origin in {typing.Union, types.UnionType}:
        return _union_reader([_reader(arm) for arm in arguments], annotation)
    if origin is tuple and arguments:
        return _tuple_reader(arguments)
    if origin in LISTS and arguments:
        return _list_reader(_reader(arguments[0]))
    if origin in OBJECTS and arguments:
        return _dict_reader(annotation, *arguments)
    return _class_reader(annotation if origin is None or arguments else origin)


def _class_reader(wanted: Any) -> Reader:
    if wanted in PLAIN:
        return _plain_reader(*PLAIN[wanted])
    if wanted is Any or wanted is object:
        return lambda value: value
    if wanted is tuple:
        return lambda value: tuple(_expect(value, (list,), "a list"))
    if not isinstance(wanted, type) or typing.get_origin(wanted) is not None:
        return _no_reader(wanted)
    if issubclass(wanted, Enum):
        return lambda value: _built(wanted, value)
    if issubclass(wanted, tuple) and hasattr(wanted, "_fields"):
        return _named_tuple_reader(wanted)
    if is_dataclass(wanted):
        return _dataclass_reader(wanted)
    if typing.is_typeddict(wanted):
        return _typed_dict_reader(wanted)
    if hasattr(wanted, "model_validate"):
        return lambda value: _built(wanted.model_validate, value)
    return _no_reader(wanted)


def _plain_reader(kinds: tuple[type, ...], name: str) -> Reader:
    def read(value: Any) -> Any:
        if isinstance(value, kinds):  # not asked of `_expect`: nearly every value comes by here
            return value
        return _expect(value, kinds, name)

    return read


def _no_reader(wanted: Any) -> Reader:
    def read(_: Any) -> Never:
        raise Undecodable(f"there is no way to make {_name(wanted)} from JSON")

    return read


def _literal_reader(options: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        for option in options:
            plain = option.value if isinstance(option, Enum) else option
            if type(plain) is type(value) and plain == value:
                return option
        raise Undecodable(f"expected one of {options!r}, found {_show(value)}")

    return read


def _union_reader(arms: list[Reader], annotation: Any) -> Reader:
    """The first arm that fits. Two that fit and differ are refused: a guess may be the wrong one."""

    def read(value: Any) -> Any:
        found = [fit for arm in arms for fit in _fits(arm, value)]
        if not found:
            raise Undecodable(f"expected {_name(annotation)}, found {_show(value)}")
        if any(other != found[0] for other in found):
            raise Undecodable(f"{_show(value)} fits more than one arm of {_name(annotation)}")
        return found[0]

    return read


def _fits(arm: Reader, value: Any) -> list[Any]:
    try:
        return [arm(value)]
    except Undecodable:
        return []


def _list_reader(item: Reader) -> Reader:
    def read(value: Any) -> list[Any]:
        items = _expect(value, (list,), "a list")
        return [_part(item, child, at) for at, child in enumerate(items)]

    return read


def _tuple_reader(arguments: tuple[Any, ...]) -> Reader:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        items = _list_reader(_reader(arguments[0]))
        return lambda value: tuple(items(value))
    return _row_reader([_reader(argument) for argument in arguments])


def _row_reader(parts: Sequence[Reader]) -> Reader:
    def read(value: Any) -> tuple[Any, ...]:
        items = _expect(value, (list,), "a list")
        if len(items) != len(parts):
            raise Undecodable(f"expected a list of {len(parts)}, found one of {len(items)}")
        pairs = enumerate(zip(parts, items, strict=True))
        return tuple(_part(part, child, at) for at, (part, child) in pairs)

    return read


def _dict_reader(annotation: Any, key: Any, item: Any) -> Reader:
    if key not in (str, Any):
        return _no_reader(annotation)
    if item is Any:
        return _plain_reader((dict,), "an object")
    part = _reader(item)

    def read(value: Any) -> dict[str, Any]:
        found = _expect(value, (dict,), "an object")
        return {name: _part(part, child, name) for name, child in found.items()}

    return read


def _dataclass_reader(wanted: Any) -> Reader:
    needed = frozenset(
        field.name
        for field in fields(wanted)
        if field.init and field.default is MISSING and field.default_factory is MISSING
    )
    names = frozenset(field.name for field in fields(wanted) if field.init)
    return lambda value: _built(wanted, **_members(wanted, value, names, needed))


def _typed_dict_reader(wanted: Any) -> Reader:
    needed = wanted.__required_keys__
    names = needed | wanted.__optional_keys__
    return lambda value: _members(wanted, value, names, needed)


def _named_tuple_reader(wanted: Any) -> Reader:
    def read(value: Any) -> Any:
        hints = _hints(wanted)
        row = _row_reader([_reader(hints.get(name, Any)) for name in wanted._fields])
        return wanted(*row(value))

    return read


def _members(
    wanted: Any, value: Any, names: frozenset[str], needed: frozenset[str]
) -> dict[str, Any]:
    found = _expect(value, (dict,), f"the fields of {_name(wanted)}")
    if missing := needed - found.keys():
        raise Undecodable(f"{_name(wanted)} lacks {', '.join(sorted(missing))}")
    if unknown := found.keys() - names:
        raise Undecodable(f"{_name(wanted)} has no {', '.join(map(repr, sorted(unknown)))}")
    hints = _hints(wanted)
    return {name: _part(_reader(hints[name]), child, name) for name, child in found.items()}


# Read when a value comes, not when its reader is made: a class may name itself, or a later one.
@lru_cache(maxsize=1024)
def _hints(wanted: Any) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(wanted, include_extras=True)
    except NameError as error:
        raise Undecodable(f"an annotation of {_name(wanted)} names nothing: {error}") from error


def _part(read: Reader, value: Any, key: object) -> Any:
    try:
        return read(value)
    except Undecodable as error:
        error.lies_under(key)
        raise


def _built(make: Callable[..., Any], *values: Any, **named: Any) -> Any:
    try:
        return make(*values, **named)
    except Undecodable:
        raise
    except (TypeError, ValueError) as error:
        raise Undecodable(f"{_name(make)} refused it: {error}") from error


def _expect(value: Any, kinds: tuple[type, ...], name: str) -> Any:
    if not isinstance(value, kinds):
        raise Undecodable(f"expected {name}, found {_show(value)}")
    return value


def _name(wanted: Any) -> str:
    return getattr(wanted, "__qualname__", None) or str(wanted)
