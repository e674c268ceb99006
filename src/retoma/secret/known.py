"""The secrets that this process has seen, in every encoding in which they may appear in a text.

This is global state on purpose: code that logs a text does not know which secrets are in it. The
oldest secrets beyond a limit are forgotten.
"""

import base64
import html
import json
import re
import string
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import quote, quote_plus

MOST: Final = 10_000  # values; beyond it the oldest are forgotten
SHORTEST: Final = 4  # characters: a shorter value matches ordinary text by chance
CORE: Final = 6  # characters of base64 that identify a secret

_HEX: Final = re.compile(r"%[0-9A-Fa-f]{2}")
BASE64: Final = frozenset(string.ascii_letters + string.digits + "+/-_=")


class Spelling(NamedTuple):
    """One encoding of a secret."""

    text: str
    base64: (
        bool  # only the middle of the secret's base64, which is independent of its alignment
    )


class Known:
    """The secrets of this process."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, tuple[Spelling, ...]] = OrderedDict()
        # Indexed by the first characters, so that a search does not get slower with more secrets.
        self._index: dict[str, Counter[Spelling]] = {}

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, value: str) -> None:
        if len(value) < SHORTEST:
            return
        if value in self._values:
            self._values.move_to_end(value)
            return
        self._values[value] = spellings = (*_written(value), *_encoded(value))
        for spelling in spellings:
            self._index.setdefault(spelling.text[:SHORTEST], Counter())[spelling] += 1
        if len(self._values) > MOST:
            self._forget(next(iter(self._values)))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where secrets appear in the text, in order; base64 with the whole run around it."""
        index, over = self._index, 0
        for at in range(len(text) - SHORTEST + 1):
            if text[at : at + SHORTEST] in index and at >= over:
                span = self._at(text, at)
                if span is not None:
                    yield span
                    over = span[1]

    def shown_in(self, text: str) -> bool:
        return any(True for _ in self.spans(text))

    def _at(self, text: str, at: int) -> tuple[int, int] | None:
        candidates = self._index[text[at : at + SHORTEST]]
        matches = [spelling for spelling in candidates if text.startswith(spelling.text, at)]
        if not matches:
            return None
        longest = max(matches, key=lambda spelling: len(spelling.text))
        end = at + len(longest.text)
        return (
            _run_around(text, at, end)
            if any(spelling.base64 for spelling in matches)
            else (at, end)
        )

    def _forget(self, value: str) -> None:
        """Forget a value, but keep spellings that other values share."""
        for spelling in self._values.pop(value):
            sharing = self._index[spelling.text[:SHORTEST]]
            sharing[spelling] -= 1
            if not sharing[spelling]:
                del sharing[spelling]
            if not sharing:
                del self._index[spelling.text[:SHORTEST]]


def _run_around(text: str, first: int, last: int) -> tuple[int, int]:
    while first and text[first - 1] in BASE64:
        first -= 1
    while last < len(text) and text[last] in BASE64:
        last += 1
    return first, last


def _written(value: str) -> Iterator[Spelling]:
    """Yield the plain value, and the value escaped for JSON, Python, URLs and HTML."""
    raw = value.encode("utf-8", "surrogatepass")
    urls = (quote(raw, safe=""), quote(raw), quote_plus(raw))
    found = {
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        repr(value)[1:-1],
        ascii(value)[1:-1],
        repr(raw)[2:-1],
        html.escape(value),
        raw.hex(),
        raw.hex().upper(),
        *urls,
        *(_HEX.sub(lambda code: code[0].lower(), each) for each in urls),
    }
    return (Spelling(each, base64=False) for each in found)


def _encoded(value: str) -> Iterator[Spelling]:
    """Yield the part of the value's base64 that does not depend on where in a longer text it starts."""
    raw = value.encode("utf-8", "surrogatepass")
    found = set()
    for before in range(3):
        padded = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        # The first digits hold bits of the preceding bytes, the last one bits of the following bytes.
        whole = (len(raw) + before) * 8 // 6
        core = padded[-(-before * 8 // 6) : whole]
        if len(core) >= CORE:
            found |= {core, core.translate(_URLSAFE)}
    return (Spelling(each, base64=True) for each in found)


_URLSAFE: Final = str.maketrans("+/", "-_")

known: Final = Known()
