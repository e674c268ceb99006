"""Where the next page of a list begins: opaque to whoever holds it, good for that list alone."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from retoma.codec import digest
from retoma.web.problems import Refusal
from retoma.words import say

T = TypeVar("T")

ID: Final = 2**63
UNSTORABLE: Final = re.compile("[\0\ud800-\udfff]")


class Cursor:
    """The cursors of one list under one filter."""

    def __init__(self, name: str, asked: object) -> None:
        said = json.dumps(asked, default=str, sort_keys=True)
        self._stamp = digest(f"{name} {said}")[:16]

    def write(self, *values: int | str | None) -> str | None:
        """None where there is no next page."""
        if values == (None,):
            return None
        text = json.dumps([self._stamp, *values], separators=(",", ":"), ensure_ascii=False)
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def read(self, cursor: str | None, *sorts: type) -> Sequence[Any] | None:
        """The values again, each of the sort that was written; None: from the beginning."""
        if cursor is None:
            return None
        values = _parsed(cursor)
        if (
            len(values) != len(sorts) + 1
            or values[0] != self._stamp
            or any(
                type(value) is not sort for value, sort in zip(values[1:], sorts, strict=True)
            )
            or not all(_storable(value) for value in values[1:])
        ):
            raise _foreign()
        return values[1:]

    def read_moment(self, cursor: str | None, *sorts: type) -> Sequence[Any] | None:
        """The same of a list by time: the first value is an instant."""
        values = self.read(cursor, str, *sorts)
        if values is None:
            return None
        try:
            at = datetime.fromisoformat(values[0])
        except ValueError:
            at = None
        if at is None or at.tzinfo is None:
            raise Refusal("bad_cursor", say("the cursor names no instant: begin without one"))
        return [at, *values[1:]]


def cut(
    stamp: Cursor, seen: Sequence[T], limit: int, place: Callable[[T], Sequence[int | str]]
) -> tuple[list[T], str | None]:
    """A page of what was read with one more than it has, and where the next begins."""
    if len(seen) <= limit:
        return [*seen], None
    return [*seen[:limit]], stamp.write(*place(seen[limit - 1]))


def turned(
    stamp: Cursor,
    cursor: str | None,
    limit: int,
    seen: Iterable[T],
    name: Callable[[T], str],
) -> tuple[list[T], str | None]:
    """A page by name, and where the next begins, of a list that people write: read whole, for it
    does not grow with the work that is done."""
    [after] = stamp.read(cursor, str) or [""]
    left = sorted((each for each in seen if name(each) > after), key=name)
    following = name(left[limit - 1]) if len(left) > limit else None
    return left[:limit], stamp.write(following)


def _storable(value: int | str) -> bool:
    """Whether a database could hold it: a cursor may be forged."""
    if isinstance(value, int):
        return -ID < value < ID
    return UNSTORABLE.search(value) is None


def _parsed(cursor: str) -> list[Any]:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, UnicodeError, ValueError, RecursionError):
        raise _foreign() from None
    if not isinstance(values, list):
        raise _foreign()
    return values


def _foreign() -> Refusal:
    return Refusal(
        "bad_cursor",
        say("the cursor is not one of this list with this filter: begin without one"),
    )
