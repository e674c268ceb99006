"""Values to JSON text and back, refusing what a database would refuse.

Some values have no form of their own in JSON: a Decimal, a datetime, bytes. They are stored as text,
and only where an annotation brings them back as what they were.

A refusal must come before the commit: a paid answer that only the database rejects would be
bought again and again (H-X3). What encode() accepts, both databases give back unchanged (E22).
"""

import json
import math
import re
import reprlib
import sys
import types
import typing
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from typing import Any, Final, Never, TypeVar
from uuid import UUID

MAX_BYTES: Final = 16 * 1024 * 1024  # groups of rows travel as one text; more is evidence
MAX_DEPTH: Final = 100  # SQLite's JSON stops at 1,000, Python's own recursion sometimes before
MAX_DIGITS: Final = 4_300  # Python reads no longer whole number unless told to
TOO_LONG: Final = 10**MAX_DIGITS
SHORT: Final = 2**63  # whole numbers that need no second look

T = TypeVar("T")
Place = tuple[object, ...]  # the keys that lead to a value

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
        return _unpickled, (self.value_repr, self.why, self.path, self.content())

    def content(self) -> bytes:
        """All of what was to be stored, as far as it can be read; never raises."""
        if isinstance(self.whole, bytes):
            return self.whole[:MAX_BYTES]
        return _show_whole(self.whole)[:MAX_BYTES].encode("utf-8", "replace")

    def __str__(self) -> str:
        return f"cannot store {self.value_repr} at {self.path}: {self.why}"


def _unpickled(value_repr: str, why: str, path: str, whole: bytes) -> Unstorable:
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


def encode(value: object, annotation: Any = None) -> str:
    """The canonical JSON text: compact, key order kept, characters as they are.

    What JSON has no form for has to come back by the annotation: `decode(text, annotation)`.
    """
    if value is None:
        return "null"
    if type(value) is int and -SHORT < value < SHORT:
        return repr(value)
    try:
        return _encoded(value, annotation)
    except Unstorable as error:
        error.whole = value
        raise
    except MemoryError:
        raise
    except Exception as error:
        # Code of the value's own, such as a property of it: it would be paid for again each time.
        why = f"looking at it raised {type(error).__name__}: {_said(error)}"
        raise Unstorable(value, why) from error


def plain(value: object) -> object:
    """The value in JSON's own types, for what need not come back as what it was."""
    return _plain(value, MAX_DEPTH)


def _encoded(value: object, annotation: Any) -> str:
    shown, typed = value, _Typed()
    if not _is_plain(value, MAX_DEPTH):
        shown = _plain(value, MAX_DEPTH, typed)
    try:
        text = TO_TEXT.encode(shown)
    except ValueError:
        _plain(shown, MAX_DEPTH)
        raise Unstorable(value, "this Python may not write so long a number") from None
    if _is_suspect(text):
        _plain(shown, MAX_DEPTH)
    if typed.found:
        _check_comes_back(value, text, typed, annotation)
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


def _plain(
    value: object, depth: int, typed: "_Typed | None" = None, place: Place = ()
) -> object:
    """The same value in JSON's own types, or Unstorable naming the first place that has none.

    `typed` gathers what is stored as text and needs an annotation to come back.
    """
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
        case Decimal() | date() | time() | timedelta() | UUID() | bytes():
            return (typed or _Typed()).text_of(value, place)
        case _ if depth > 0:
            return _plain_inside(value, depth, typed, place)
        case _:
            raise Unstorable(value, f"it is nested deeper than {MAX_DEPTH}")


def _plain_inside(value: object, depth: int, typed: "_Typed | None", place: Place) -> object:
    def child(key: object, value: object) -> object:
        return _child(key, value, depth, typed, place)

    match value:
        case dict():
            return {_checked_key(key): child(key, value[key]) for key in value}
        case list() | tuple():
            return [child(at, each) for at, each in enumerate(value)]
        case _:
            shown = _opened(value)
            # Its fields are one level, like a dict; whatever else comes out must not go on for ever.
            return _plain(shown, depth if isinstance(shown, dict) else depth - 1, typed, place)


def _child(
    key: object, value: object, depth: int, typed: "_Typed | None", place: Place
) -> object:
    try:
        return _plain(value, depth - 1, typed, (*place, key))
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
    except UnicodeDecodeError as error:
        why = "it has bytes: set ser_json_bytes and val_json_bytes to 'base64' in its model_config"
        raise Unstorable(value, why) from error
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


class _Show(reprlib.Repr):
    """Like repr, for a value that may be endless or broken: its own repr may raise."""

    def repr1(self, x: Any, level: int) -> str:
        try:
            return super().repr1(x, level)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # whatever its repr does
            return f"<{type(x).__qualname__}, whose repr raised {type(error).__name__}>"

    def repr_int(self, x: int, level: int) -> str:
        if abs(x) >= TOO_LONG:
            return self.long_int(x)
        return super().repr_int(x, level)

    def long_int(self, x: int) -> str:
        return f"a whole number of {x.bit_length():,} bits"


class _ShowWhole(_Show):
    """All of it, up to what may be stored."""

    def long_int(self, x: int) -> str:
        return hex(x)


def _show(value: object) -> str:
    look = _Show()
    look.maxlevel = 3
    look.maxstring = look.maxother = 80
    return look.repr(value)


def _show_whole(value: object) -> str:
    try:
        return repr(value)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  # whatever its repr does
        look = _ShowWhole()
        look.maxlevel = MAX_DEPTH
        for limit in ("string", "other", "long", "list", "tuple", "dict", "set", "frozenset"):
            setattr(look, f"max{limit}", MAX_BYTES)
        return look.repr(value)


def _said(error: BaseException) -> str:
    try:
        return str(error)[:200]
    except Exception:  # noqa: BLE001  # an exception of the value's own
        return "its message could not be read"


# --- what is stored as text and comes back by an annotation


@dataclass(frozen=True, slots=True)
class Form:
    """How values of one type are written as text, and read again."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]  # ValueError where the text is no such value
    example: str


def _write_decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise Unstorable(value, "a Decimal is stored only where it is a number")
    return str(value)


def _read_decimal(text: str) -> Decimal:
    try:
        return Decimal(_matched(DECIMAL, text)[0])
    except ArithmeticError:
        raise ValueError("its exponent is too large") from None


def _read_datetime(text: str) -> datetime:
    if "T" not in text:
        raise ValueError("it has no time of day")
    return datetime.fromisoformat(text)


def _write_time(value: time) -> str:
    if value.tzinfo is not None and value.utcoffset() is None:
        raise Unstorable(value, "without a date its time zone has no offset")
    return value.isoformat()


def _write_timedelta(value: timedelta) -> str:
    """As ISO 8601 has it, in seconds: `PT90.5S`."""
    seconds, millionths = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    fraction = f".{millionths:06}".rstrip("0") if millionths else ""
    return f"{'-' if value < timedelta() else ''}PT{seconds}{fraction}S"


def _read_timedelta(text: str) -> timedelta:
    sign, days, hours, minutes, seconds, fraction = _matched(DURATION, text).groups()
    try:
        length = timedelta(
            days=int(days or 0),
            hours=int(hours or 0),
            minutes=int(minutes or 0),
            seconds=int(seconds or 0),
            microseconds=int((fraction or "").ljust(6, "0")),
        )
    except OverflowError:
        raise ValueError("it is too long") from None
    return -length if sign else length


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError("it is written otherwise")
    return found


DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIME: Final = re.compile(r"[0-9]{2}:.*")
DURATION: Final = re.compile(
    r"(-)?P(?=[0-9T])(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]{1,6}))?S)?)?"
)
ID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

# A datetime is a date too: the first that fits is meant.
FORMS: Final[Mapping[type, Form]] = {
    Decimal: Form(_write_decimal, _read_decimal, "12.50"),
    datetime: Form(datetime.isoformat, _read_datetime, "2026-03-01T09:30:00+00:00"),
    date: Form(
        date.isoformat, lambda text: date.fromisoformat(_matched(DATE, text)[0]), "2026-03-01"
    ),
    time: Form(
        _write_time, lambda text: time.fromisoformat(_matched(TIME, text)[0]), "09:30:00"
    ),
    timedelta: Form(_write_timedelta, _read_timedelta, "PT90.5S"),
    UUID: Form(
        str, lambda text: UUID(_matched(ID, text)[0]), "0f8fad5b-d9cb-469f-a165-70867728950e"
    ),
    bytes: Form(
        lambda value: b64encode(value).decode(),
        lambda text: b64decode(text, validate=True),
        "cGFpZA==",
    ),
}


@dataclass(slots=True)
class _Typed:
    """The values in a value that are stored as text: where each is, and of which type."""

    found: dict[Place, type] = field(default_factory=dict)
    refused: Place | None = None

    def text_of(self, value: object, place: Place) -> str:
        kind = next(kind for kind in FORMS if isinstance(value, kind))
        if place == self.refused:
            raise Unstorable(
                value,
                f"a {kind.__name__} comes back only where an annotation says so; annotate the"
                f" result, the parameter or the field as {kind.__name__}",
            )
        self.found[place] = kind
        return FORMS[kind].write(value)


def _check_comes_back(value: object, text: str, typed: _Typed, annotation: Any) -> None:
    """Refuse what would come back as another type than it has."""
    back = _Typed()
    try:
        _plain(decode(text, annotation), MAX_DEPTH, back)
    except Undecodable as error:
        raise Unstorable(value, f"it does not fit its annotation: {error}") from error
    lost = next(
        (at for at, kind in typed.found.items() if back.found.get(at) is not kind), None
    )
    if lost is not None:
        _plain(value, MAX_DEPTH, _Typed(refused=lost))


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
        known = _READERS.get(annotation)
    except TypeError:  # an annotation that cannot be hashed, such as Annotated[int, []]
        return _make_reader(annotation)
    if known is None:
        known = _make_reader(annotation)
        if _is_permanent(annotation):
            _keep(_READERS, annotation, known)
    return known


# Of types that last as long as their module. A class made in a handler can hold, by its methods, all
# that the handler's attempt has saved; its reader is made anew each time.
_READERS: Final[dict[Any, Reader]] = {}
_HINTS: Final[dict[Any, Mapping[str, Any]]] = {}
MOST_KEPT: Final = 1024


def _keep(cache: dict[Any, T], key: Any, value: T) -> None:
    if len(cache) >= MOST_KEPT:
        cache.clear()
    cache[key] = value


def _is_permanent(annotation: Any) -> bool:
    """Whether no class that it names was made by a call of a function."""
    if hasattr(annotation, "__metadata__"):
        return False  # of Annotated[…], which may hold anything
    arguments = typing.get_args(annotation)
    if arguments:
        return all(_is_permanent(argument) for argument in arguments)
    if isinstance(annotation, Enum):
        annotation = type(annotation)
    if isinstance(annotation, type):
        return "<locals>" not in annotation.__qualname__
    return annotation is Any or annotation is Ellipsis or type(annotation) in SCALARS


def _make_reader(annotation: Any) -> Reader:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in {typing.Required, typing.NotRequired}:
        return _reader(arguments[0])
    bare = _bare(annotation)
    if bare is not annotation:
        return _reader(bare)
    if origin is typing.Literal:
        return _literal_reader(arguments)
    if origin in {typing.Union, types.UnionType}:
        _check_told_apart(annotation, [_bare(arm) for arm in arguments])
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
    if wanted in FORMS:
        return _form_reader(wanted, FORMS[wanted])
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
    if hasattr(wanted, "model_validate_json"):
        # As JSON: a strict model takes a date from text there, and base64 is read as bytes.
        return lambda value: _built(wanted.model_validate_json, TO_TEXT.encode(value))
    if hasattr(wanted, "model_validate"):
        return lambda value: _built(wanted.model_validate, value)
    return _no_reader(wanted)


def _plain_reader(kinds: tuple[type, ...], name: str) -> Reader:
    def read(value: Any) -> Any:
        if isinstance(value, kinds):  # not asked of `_expect`: nearly every value comes by here
            return value
        return _expect(value, kinds, name)

    return read


def _form_reader(wanted: type, form: Form) -> Reader:
    expected = f'a {wanted.__name__} as text, such as "{form.example}"'

    def read(value: Any) -> Any:
        text = _expect(value, (str,), expected)
        try:
            return form.read(text)
        except ValueError:
            raise Undecodable(f"expected {expected}, found {_show(value)}") from None

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


def _check_told_apart(annotation: Any, arms: list[Any]) -> None:
    """Refuse arms of which both may read the same text."""
    for one in (str, bytes):
        other = next((arm for arm in arms if arm in FORMS and arm is not one), None)
        if one in arms and other is not None:
            raise Undecodable(
                f"{one.__name__} and {other.__name__} are both text in JSON: {_name(annotation)}"
                " cannot be told apart; give each a field of its own"
            )


def _bare(annotation: Any) -> Any:
    """An annotation without what is said beside its type."""
    while True:
        if isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        else:
            return annotation


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
def _hints(wanted: Any) -> Mapping[str, Any]:
    known = _HINTS.get(wanted)
    if known is not None:
        return known
    try:
        hints = typing.get_type_hints(wanted, include_extras=True)
    except NameError as error:
        raise Undecodable(f"an annotation of {_name(wanted)} names nothing: {error}") from error
    if _is_permanent(wanted):
        _keep(_HINTS, wanted, hints)
    return hints


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
