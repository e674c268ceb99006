"""Redaction: whatever is told, secrets are taken out of it first.

Three ways, one after the other: by what a field is called, by what a text looks like (addresses with
passwords, headers, our own tokens), and by the values this process knows, however they are nested
and encoded. In doubt nothing is shown.
"""

import base64
import binascii
import html
import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, unquote_plus

from retoma.secret.known import known
from retoma.secret.value import STARS, Secret

DEEPEST: Final = 20  # of a value in a value; nobody reads further
LAYERS: Final = 5  # of an encoding in an encoding
LONGEST: Final = 200_000  # characters of one text; a longer one is not shown
BUDGET: Final = 500_000  # characters that lie under its layers; with more it is not shown …
LINE: Final = 4_096  # characters that are always looked through
EACH: Final = (
    16  # … nor with more for each of its own, so that a short text is soon looked through
)

_NAMES = (
    r"password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|secret[_-]?key|client[_-]?secret|credentials?|authorization|cookie|x-api-key|signature"
)
_PREFIX = r"(?:[a-z0-9]{1,30}[_-]){0,4}"  # bounded: a long text must not take long
NAMED: Final = re.compile(rf"(?:.*[_-])?(?:{_NAMES})", re.IGNORECASE)


class _Look(NamedTuple):
    """A pattern, what must stand in a text before it is worth a look, and what is told instead."""

    signs: tuple[str, ...]
    pattern: re.Pattern[str]
    instead: str


_SIGNS = (
    "passw",
    "passp",
    "secret",
    "token",
    "key",
    "credential",
    "authoriz",
    "cookie",
    "signat",
)
_LOOKS: Final = (
    # An address's user and password.
    _Look(
        ("://",),
        re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://)[^\s/?#]*@", re.IGNORECASE),
        rf"\1{STARS}@",
    ),
    # A header, with or without its scheme.
    _Look(
        ("authorization", "x-api-key", "cookie"),
        re.compile(
            r"(\b(?:proxy-)?authorization\b|\bx-api-key\b|\b(?:set-)?cookie\b)"
            r"""((?:\\*["'])?\s*[:=]\s*(?:\\*["'])?)((?:basic|bearer|digest)\s+)?[^"'\\\r\n]+""",
            re.IGNORECASE,
        ),
        rf"\1\2{STARS}",
    ),
    _Look(
        ("basic", "bearer"),
        re.compile(r"\b(basic|bearer)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE),
        rf"\1 {STARS}",
    ),
    # A parameter of an address.
    _Look(
        (*_SIGNS, "sig"),
        re.compile(rf"([?&;](?:key|sig|{_NAMES})=)[^&\s\"'#;]+", re.IGNORECASE),
        rf"\1{STARS}",
    ),
    # "name": "value" and name=value, also inside a text inside a text.
    _Look(
        _SIGNS,
        re.compile(
            rf"""\b({_PREFIX}(?:{_NAMES})\\*["']\s*:\s*[a-z]?(\\*["']))(?:(?!\2).)+""",
            re.IGNORECASE | re.DOTALL,
        ),
        rf"\1{STARS}",
    ),
    _Look(
        _SIGNS,
        re.compile(rf"""\b({_PREFIX}(?:{_NAMES})\s*=\s*)[^\s&"'\\;,)]+""", re.IGNORECASE),
        rf"\1{STARS}",
    ),
    # A token of ours: which one it was may be said.
    _Look(
        ("retoma_",),
        re.compile(r"(retoma_(?:link_|session_)?[0-9a-f]{16}_)[0-9A-Za-z]{8,}"),
        rf"\1{STARS}",
    ),
)
# Nearly every text has none of the signs: that is seen in one pass.
_ANY_SIGN: Final = re.compile(
    "|".join(sorted({re.escape(sign) for look in _LOOKS for sign in look.signs}))
)
_RUN: Final = re.compile(r"[A-Za-z0-9+/_-]{11,}")  # eleven digits hold eight bytes
_HEX: Final = re.compile(r"[0-9a-f-]+")  # an id or a date, not base64
_PERCENT: Final = re.compile(r"%[0-9a-fA-F]{2}")
_ESCAPE: Final = re.compile(
    r"""\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([nrtbfav0"'\\/]))"""
)
_CONTROLS: Final = dict(zip("nrtbfav0", "\n\r\t\b\f\a\v\0", strict=True))


def redact(value: Any, depth: int = DEEPEST) -> Any:
    """The same without its secrets; what is no plain value becomes text."""
    if depth == 0:
        return STARS
    match value:
        case None | bool() | int() | float():
            return value
        case Secret():
            return STARS
        case str():
            return redact_text(value)
        case bytes() | bytearray():
            return redact_text(repr(bytes(value)))
        case Mapping():
            return {
                _text(name): STARS if _named(name, each) else redact(each, depth - 1)
                for name, each in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [redact(each, depth - 1) for each in value]
        case _:
            return _text(value)


def redact_text(text: str) -> str:
    """A text without its secrets, however they are spelt in it."""
    if len(text) > LONGEST:
        return STARS
    text = _without_patterns(text)
    if not known:
        return text
    return _unveiled(_without_known(text))


def _without_patterns(text: str) -> str:
    lower = text.lower()
    if _ANY_SIGN.search(lower) is None:
        return text
    for look in _LOOKS:
        if any(sign in lower for sign in look.signs):
            text = look.pattern.sub(look.instead, text)
    return text


def _named(name: Any, value: Any) -> bool:
    """Whether what is called so is hidden unseen; nothing and yes or no are no secrets."""
    if value is None or isinstance(value, bool):
        return False
    return isinstance(name, str) and NAMED.fullmatch(name) is not None


def _text(value: Any) -> str:
    try:
        text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    except Exception:  # noqa: BLE001 — somebody's own object, which cannot even speak
        return STARS
    return redact_text(text)


def _without_known(text: str) -> str:
    parts, at = [], 0
    for first, last in known.spans(text):
        parts += [text[at:first], STARS]
        at = last
    return "".join([*parts, text[at:]]) if parts else text


# — what lies under one more encoding —


def _unveiled(text: str) -> str:
    """Without what hides a secret under several encodings: a run of base64, or the whole text."""
    search = _Search(text)
    hidden: set[str] = set()
    try:
        for run in _runs(text):
            if any(search.hides(each, LAYERS - 1) for each in _decoded(run)):
                hidden.add(run)
        if any(search.hides(each, LAYERS - 1) for each in _unescaped(text)):
            return STARS
    except _TooMuch:
        return STARS
    return _RUN.sub(lambda run: STARS if run[0] in hidden else run[0], text)


class _TooMuch(Exception):
    """More to look through than one text is worth."""


class _Search:
    """What was looked through under the layers of one text: nothing twice, and only so much."""

    def __init__(self, text: str) -> None:
        self._left = min(EACH * len(text) + LINE, BUDGET)
        self._seen = {text: LAYERS}

    def hides(self, text: str, layers: int) -> bool:
        """Whether a secret lies in it, under at most so many more layers."""
        if self._seen.get(text, -1) >= layers:
            return False
        self._seen[text] = layers
        self._left -= len(text)
        if self._left < 0:
            raise _TooMuch
        if known.shown_in(text):
            return True
        if layers == 0:
            return False
        views = chain(_unescaped(text), *map(_decoded, _runs(text)))
        return any(self.hides(each, layers - 1) for each in views)


def _runs(text: str) -> set[str]:
    return {run for run in _RUN.findall(text) if not _HEX.fullmatch(run)}


def _unescaped(text: str) -> Iterator[str]:
    """The text as it was before it was made fit for an address, for JSON or Python, for a page."""
    if _PERCENT.search(text):
        yield unquote(text, errors="replace")
        if "+" in text:
            yield unquote_plus(text, errors="replace")
    if _ESCAPE.search(text):
        plain = _ESCAPE.sub(_character, text)
        yield plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        yield plain.encode("latin-1", "replace").decode("utf-8", "replace")
    if "&" in text and ";" in text:
        yield html.unescape(text)


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code is None:
        return _CONTROLS.get(found[4], found[4])
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else found[0]


def _decoded(run: str) -> Iterator[str]:
    """What a run of base64 says, wherever in it the first whole group begins."""
    plain = run.translate(_STANDARD)
    for begin in range(4):
        part = plain[begin:]
        part = part[: len(part) - (len(part) % 4 == 1)]
        try:
            raw = base64.b64decode(part + "=" * (-len(part) % 4))
        except (binascii.Error, ValueError):
            continue
        yield raw.decode("utf-8", "replace")


_STANDARD: Final = str.maketrans("-_", "+/")
