"""Remove secrets from every value before it is logged, stored or shown.

Three passes: by field name, by pattern (URLs with passwords, headers, our own tokens), and by the
secrets that this process knows, in any nesting and encoding. In doubt the text is hidden.
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

DEEPEST: Final = 20  # levels of nested values; deeper ones are hidden
LAYERS: Final = 5  # levels of nested encodings
LONGEST: Final = 200_000  # characters of one text; a longer one is not shown
BUDGET: Final = 500_000  # decoded characters per text; a text that needs more is hidden …
LINE: Final = 4_096  # decoded characters that every text may need
EACH: Final = (
    16  # … and so is a text that needs more per own character, so that short texts are fast
)

_NAMES = (
    r"password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|secret[_-]?key|client[_-]?secret|credentials?|authorization|cookie|x-api-key|signature"
)
_PREFIX = r"(?:[a-z0-9]{1,30}[_-]){0,4}"  # bounded, so that matching stays linear
NAMED: Final = re.compile(rf"(?:.*[_-])?(?:{_NAMES})", re.IGNORECASE)


class _Rule(NamedTuple):
    """A pattern, the words that a text must contain before the pattern is tried, and the replacement."""

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
_RULES: Final = (
    # User and password of a URL.
    _Rule(
        ("://",),
        re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://)[^\s/?#]*@", re.IGNORECASE),
        rf"\1{STARS}@",
    ),
    # A header, with or without its scheme.
    _Rule(
        ("authorization", "x-api-key", "cookie"),
        re.compile(
            r"(\b(?:proxy-)?authorization\b|\bx-api-key\b|\b(?:set-)?cookie\b)"
            r"""((?:\\*["'])?\s*[:=]\s*(?:\\*["'])?)((?:basic|bearer|digest)\s+)?[^"'\\\r\n]+""",
            re.IGNORECASE,
        ),
        rf"\1\2{STARS}",
    ),
    _Rule(
        ("basic", "bearer"),
        re.compile(r"\b(basic|bearer)\s+[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE),
        rf"\1 {STARS}",
    ),
    # A query parameter of a URL.
    _Rule(
        (*_SIGNS, "sig"),
        re.compile(rf"([?&;](?:key|sig|{_NAMES})=)[^&\s\"'#;]+", re.IGNORECASE),
        rf"\1{STARS}",
    ),
    # "name": "value" and name=value, also in an escaped string.
    _Rule(
        _SIGNS,
        re.compile(
            rf"""\b({_PREFIX}(?:{_NAMES})\\*["']\s*:\s*[a-z]?(\\*["']))(?:(?!\2).)+""",
            re.IGNORECASE | re.DOTALL,
        ),
        rf"\1{STARS}",
    ),
    _Rule(
        _SIGNS,
        re.compile(rf"""\b({_PREFIX}(?:{_NAMES})\s*=\s*)[^\s&"'\\;,)]+""", re.IGNORECASE),
        rf"\1{STARS}",
    ),
    # A token of retoma: its id stays visible.
    _Rule(
        ("retoma_",),
        re.compile(r"(retoma_(?:link_|session_)?[0-9a-f]{16}_)[0-9A-Za-z]{8,}"),
        rf"\1{STARS}",
    ),
)
# Nearly every text has none of the signs; one pass shows that.
_ANY_SIGN: Final = re.compile(
    "|".join(sorted({re.escape(sign) for rule in _RULES for sign in rule.signs}))
)
_RUN: Final = re.compile(r"[A-Za-z0-9+/_-]{11,}")  # eleven digits hold eight bytes
_HEX: Final = re.compile(r"[0-9a-f-]+")  # an id or a date, not base64
_PERCENT: Final = re.compile(r"%[0-9a-fA-F]{2}")
_ESCAPE: Final = re.compile(
    r"""\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([nrtbfav0"'\\/]))"""
)
_CONTROLS: Final = dict(zip("nrtbfav0", "\n\r\t\b\f\a\v\0", strict=True))


def redact(value: Any, depth: int = DEEPEST) -> Any:
    """Return the value without its secrets. Values that JSON does not know become text."""
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
                _text(name): STARS if _is_secret_field(name, item) else redact(item, depth - 1)
                for name, item in value.items()
            }
        case list() | tuple() | set() | frozenset():
            return [redact(item, depth - 1) for item in value]
        case _:
            return _text(value)


def redact_text(text: str) -> str:
    """Return the text without its secrets, in whatever encoding they appear."""
    if len(text) > LONGEST:
        return STARS
    text = _without_patterns(text)
    if not known:
        return text
    return _without_encoded(_without_known(text))


def _without_patterns(text: str) -> str:
    lower = text.lower()
    if _ANY_SIGN.search(lower) is None:
        return text
    for rule in _RULES:
        if any(sign in lower for sign in rule.signs):
            text = rule.pattern.sub(rule.instead, text)
    return text


def _is_secret_field(name: Any, value: Any) -> bool:
    """Whether the field's name means that its value is hidden. None and booleans are not secrets."""
    if value is None or isinstance(value, bool):
        return False
    return isinstance(name, str) and NAMED.fullmatch(name) is not None


def _text(value: Any) -> str:
    try:
        text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    except Exception:  # noqa: BLE001 — a foreign object whose __str__ may raise anything
        return STARS
    return redact_text(text)


def _without_known(text: str) -> str:
    parts, at = [], 0
    for first, last in known.spans(text):
        parts += [text[at:first], STARS]
        at = last
    return "".join([*parts, text[at:]]) if parts else text


def _without_encoded(text: str) -> str:
    """Hide what contains a secret under nested encodings: a run of base64, or the whole text."""
    search = _Search(text)
    hidden: set[str] = set()
    try:
        for run in _runs(text):
            if any(search.hides(decoded, LAYERS - 1) for decoded in _decoded(run)):
                hidden.add(run)
        if any(search.hides(plain, LAYERS - 1) for plain in _unescaped(text)):
            return STARS
    except _TooMuch:
        return STARS
    return _RUN.sub(lambda run: STARS if run[0] in hidden else run[0], text)


class _TooMuch(Exception):
    """The text needs more decoding than its budget allows."""


class _Search:
    """The search of one text's nested encodings: each decoded text once, within a budget."""

    def __init__(self, text: str) -> None:
        self._left = min(EACH * len(text) + LINE, BUDGET)
        self._seen = {text: LAYERS}

    def hides(self, text: str, layers: int) -> bool:
        """Whether the text contains a secret, under at most `layers` more encodings."""
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
        return any(self.hides(view, layers - 1) for view in views)


def _runs(text: str) -> set[str]:
    return {run for run in _RUN.findall(text) if not _HEX.fullmatch(run)}


def _unescaped(text: str) -> Iterator[str]:
    """Yield the text with the escapes of URLs, JSON, Python and HTML undone."""
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


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is None:
        return _CONTROLS.get(match[4], match[4])
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else match[0]


def _decoded(run: str) -> Iterator[str]:
    """Yield the decodings of a run of base64, for each of the four possible alignments."""
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
