"""Check a JSON body: UTF-8, flat enough, nothing that two readers would read differently."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Never

from retoma.web.problems import Flaw, Refusal
from retoma.words import Said, say

DIGITS: Final = 4_300  # of a whole number; Python reads no longer one
PIECE: Final = 64 * 1024  # bytes that are looked through at a time
# Of one object: a validator makes an error for each key that it does not know, 2 µs on the loop.
KEYS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the inside of a body may be."""

    depth: int = 32
    keys: int = 10_000
    text: int | None = 64 * 1024  # characters; None: the route looks at each string itself
    values: int = 400_000  # Python needs about 70 bytes for each, however short it is written
    containers: int = (
        50_000  # lists and objects: each time there are some more, Python looks at all
    )


def read_json(raw: bytes, shape: Shape) -> Any:
    """What a body says. Refuse what is no JSON (400), and what no database would give back unchanged (422).

    Time and memory are linear in the bytes: the path of a value is built only for an error.
    """
    _check_count(raw, shape)
    value = _parsed(raw, shape)
    try:
        _check_value(value, 1, shape)
    except _Flawed as flawed:
        raise _refused(flawed) from None
    return value


def _check_count(raw: bytes, shape: Shape) -> None:
    """Before a single object is made of them."""
    if not _has_many(raw, shape):
        return
    commas = opened = 0
    for part in _outside_strings(raw):
        commas += part.count(b",")
        opened += part.count(b"[") + part.count(b"{")
    if opened > shape.containers:
        raise _unreadable(
            say("it has more than {most} lists and objects", most=shape.containers)
        )
    if commas + opened > shape.values:
        raise _unreadable(say("it has more than {most} values", most=shape.values))


def _has_many(raw: bytes, shape: Shape) -> bool:
    """Whether it may have too many, as far as can be said at once."""
    opened = raw.count(b"[") + raw.count(b"{")
    return opened > shape.containers or opened + raw.count(b",") > shape.values


def _outside_strings(raw: bytes) -> Iterator[bytes]:
    plain = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    is_inside = False
    for at in range(0, len(plain), PIECE):
        parts = plain[at : at + PIECE].split(b'"')
        yield b"".join(parts[is_inside::2])
        is_inside ^= len(parts) % 2 == 0


def _parsed(raw: bytes, shape: Shape) -> Any:
    seen = 0

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal seen
        seen += len(items)
        if seen > shape.keys:
            raise _unreadable(say("it has more than {most} keys", most=shape.keys))
        if len(items) > KEYS:
            raise _unreadable(say("an object in it has more than {most} keys", most=KEYS))
        made = dict(items)
        if len(made) < len(items):
            raise _unreadable(say("it says the same key twice"))
        return made

    try:
        return json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=pairs,
            parse_constant=_no_number,
            parse_float=_finite,
            parse_int=_short,
        )
    except UnicodeDecodeError:
        raise _unreadable(say("it is not UTF-8")) from None
    except RecursionError:
        raise _unreadable(say("it is nested deeper than {most}", most=shape.depth)) from None
    except ValueError:
        raise _unreadable(say("it is no JSON")) from None


class _Flawed(Exception):
    """A value that is not allowed; on its way up it learns where it stands."""

    def __init__(self, why: Said) -> None:
        super().__init__()
        self.why = why
        self.way: list[str] = []


def _check_value(value: Any, depth: int, shape: Shape) -> None:
    if isinstance(value, str):
        _check_text(value, shape)
    elif isinstance(value, dict):
        _check_depth(depth, shape)
        _check_object(value, depth, shape)
    elif isinstance(value, list):
        _check_depth(depth, shape)
        at = 0
        try:
            for at, each in enumerate(value):  # noqa: B007 — read by the handler
                _check_value(each, depth + 1, shape)
        except _Flawed as flawed:
            flawed.way.append(f"[{at}]")
            raise


def _check_object(value: dict[str, Any], depth: int, shape: Shape) -> None:
    for key, each in value.items():
        _check_text(key, shape)
        try:
            _check_value(each, depth + 1, shape)
        except _Flawed as flawed:
            flawed.way.append(f".{key[:100]}")
            raise


def _check_depth(depth: int, shape: Shape) -> None:
    if depth > shape.depth:
        raise _unreadable(say("it is nested deeper than {most}", most=shape.depth))


def _check_text(text: str, shape: Shape) -> None:
    if shape.text is None:
        return
    if len(text) > shape.text:
        raise _Flawed(say("has more than {most} characters", most=shape.text))
    if "\0" in text:
        raise _Flawed(say("has a NUL character"))
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _Flawed(say("has half a surrogate pair")) from None


def _no_number(_: str) -> Never:
    raise _unreadable(say("NaN and Infinity are no numbers of JSON"))


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _unreadable(say("a number in it is too large"))
    return number


def _short(text: str) -> int:
    if len(text) > DIGITS:
        raise _unreadable(say("a number in it is too large"))
    return int(text)


def _unreadable(why: Said) -> Refusal:
    return Refusal("bad_json", say("the body cannot be read: {why}", why=why))


def _refused(flawed: _Flawed) -> Refusal:
    # The path is somebody's own words: shown, but never with what could steer a terminal.
    path = "body" + "".join(reversed(flawed.way))
    shown = path.encode("unicode_escape").decode()
    return Refusal(
        "bad_input",
        say("a value is not allowed; nothing was changed"),
        [Flaw(shown, flawed.why)],
    )
