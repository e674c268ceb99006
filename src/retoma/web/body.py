"""What a JSON body may be: UTF-8, flat enough, nothing that two readers would read differently."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Never

from retoma.web.problems import Flaw, Refusal
from retoma.words import Said, say

DIGITS: Final = 4_300  # of a whole number; Python reads no longer one


@dataclass(frozen=True, slots=True)
class Shape:
    """How large the inside of a body may be."""

    depth: int = 32
    keys: int = 10_000
    text: int = 64 * 1024  # characters


def check_json(raw: bytes, shape: Shape) -> None:
    """Refuse what is no JSON (400), and what no database would give back unchanged (422)."""
    for path, depth, value in _walk(_parsed(raw, shape)):
        if depth > shape.depth and isinstance(value, dict | list):
            raise _unreadable(say("it is nested deeper than {most}", most=shape.depth))
        if isinstance(value, str):
            _check_text(path, value, shape)


def _parsed(raw: bytes, shape: Shape) -> Any:
    seen = 0

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal seen
        seen += len(items)
        if seen > shape.keys:
            raise _unreadable(say("it has more than {most} keys", most=shape.keys))
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


def _walk(value: Any) -> Iterator[tuple[str, int, Any]]:
    """Every value inside with its path and depth, keys too; without recursion."""
    left: list[tuple[str, int, Any]] = [("body", 1, value)]
    while left:
        path, depth, each = left.pop()
        yield path, depth, each
        if isinstance(each, dict):
            for key, child in each.items():
                yield path, depth, key
                left.append((f"{path}.{key[:100]}", depth + 1, child))
        elif isinstance(each, list):
            left += [(f"{path}[{at}]", depth + 1, child) for at, child in enumerate(each)]


def _check_text(path: str, text: str, shape: Shape) -> None:
    if len(text) > shape.text:
        raise _flawed(path, say("has more than {most} characters", most=shape.text))
    if "\0" in text:
        raise _flawed(path, say("has a NUL character"))
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _flawed(path, say("has half a surrogate pair")) from None


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


def _flawed(path: str, why: Said) -> Refusal:
    # The path is somebody's own words: shown, but never with what could steer a terminal.
    shown = path.encode("ascii", "backslashreplace").decode()
    return Refusal(
        "bad_input", say("a value is not allowed; nothing was changed"), [Flaw(shown, why)]
    )
