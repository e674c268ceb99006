"""Where a text says the words of a question: whatever their accents, their case, and how they end."""

import re
from collections.abc import Sequence
from typing import Final

from retoma.text import normalize

WORD: Final = re.compile(r"[^\W_]+")
TELLING: Final = (
    3  # letters; shorter words are everywhere, and looked for only where there are no others
)
MOST: Final = 32  # words of a question


def spans_of(text: str, question: str) -> tuple[tuple[int, int], ...]:
    """From and to, in characters of the text, in order; no two of them touch."""
    words = _words(question)
    if not words:
        return ()
    begins = "|".join(re.escape(word) for word in words)
    pattern = re.compile(rf"(?<![^\W_])(?:{begins})[^\W_]*")
    return tuple((found.start(), found.end()) for found in pattern.finditer(_folded(text)))


def pieces_of(text: str, spans: Sequence[tuple[int, int]]) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether it is one of the spans: for a page, which marks them."""
    pieces, done = list[tuple[str, bool]](), 0
    for start, end in spans:
        pieces += [(text[done:start], False), (text[start:end], True)]
        done = end
    return [piece for piece in [*pieces, (text[done:], False)] if piece[0]]


def _words(question: str) -> list[str]:
    found = list(dict.fromkeys(WORD.findall(_folded(question))))
    telling = [word for word in found if len(word) >= TELLING] or found
    return sorted(telling[:MOST], key=len, reverse=True)


def _folded(text: str) -> str:
    """As long as it was: letter for letter, so that places in it are places in the text."""
    if text.isascii():
        return text.lower()
    return "".join(map(_letter, text))


def _letter(letter: str) -> str:
    return normalize("NFKD", letter)[0].casefold()[0]
