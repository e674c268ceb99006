"""What this process has seen of secrets, in every spelling that may turn up in a text.

This remembers, as few things here do, and on purpose: a log line is written by code that knows
nothing of the secret it was handed. It forgets the oldest beyond a bound.
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

MOST: Final = 10_000  # values; beyond it the oldest is no longer looked for
SHORTEST: Final = 4  # characters: what is shorter stands by chance in every second line
CORE: Final = 6  # characters of base64 that are enough to know it again

_HEX: Final = re.compile(r"%[0-9A-Fa-f]{2}")
BASE64: Final = frozenset(string.ascii_letters + string.digits + "+/-_=")


class Spelling(NamedTuple):
    """One way in which a secret may be written."""

    text: str
    base64: bool  # only its middle: more of it stands before and behind


class Known:
    """Secrets of this process."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, tuple[Spelling, ...]] = OrderedDict()
        # By their first characters: how long a look takes does not depend on how many there are.
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
        for each in spellings:
            self._index.setdefault(each.text[:SHORTEST], Counter())[each] += 1
        if len(self._values) > MOST:
            self._forget(next(iter(self._values)))

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where something of theirs stands, in order; what is base64 with all that is around it."""
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
        like = self._index[text[at : at + SHORTEST]]
        found = [each for each in like if text.startswith(each.text, at)]
        if not found:
            return None
        longest = max(found, key=lambda each: len(each.text))
        end = at + len(longest.text)
        return _run_around(text, at, end) if any(each.base64 for each in found) else (at, end)

    def _forget(self, value: str) -> None:
        """But for what others are spelt like too."""
        for each in self._values.pop(value):
            like = self._index[each.text[:SHORTEST]]
            like[each] -= 1
            if not like[each]:
                del like[each]
            if not like:
                del self._index[each.text[:SHORTEST]]


def _run_around(text: str, first: int, last: int) -> tuple[int, int]:
    while first and text[first - 1] in BASE64:
        first -= 1
    while last < len(text) and text[last] in BASE64:
        last += 1
    return first, last


def _written(value: str) -> Iterator[Spelling]:
    """As people and programs write it: plain, and escaped for JSON, Python, addresses and pages."""
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
    """What of its base64 stays the same wherever in a longer text it began."""
    raw = value.encode("utf-8", "surrogatepass")
    found = set()
    for before in range(3):
        padded = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        # The first digits hold bits of what stands before, the last one bits of what follows.
        whole = (len(raw) + before) * 8 // 6
        core = padded[-(-before * 8 // 6) : whole]
        if len(core) >= CORE:
            found |= {core, core.translate(_URLSAFE)}
    return (Spelling(each, base64=True) for each in found)


_URLSAFE: Final = str.maketrans("+/", "-_")

known: Final = Known()
