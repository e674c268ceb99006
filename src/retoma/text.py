"""Normalize untrusted text in linear time."""

import re
import unicodedata
from functools import lru_cache
from typing import Final, Literal

# The limit of Unicode's "stream-safe" format (UAX 15); no language needs ten in a row.
MOST_MARKS: Final = 30
# Shorter runs cannot hold enough marks to make sorting slow.
LONG_RUN: Final = re.compile(r"[^\x00-\x7f]{64,}")

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]


def normalize(form: Form, text: str) -> str:
    """Normalize as `unicodedata` does, but drop marks beyond the 30th in a row: Python sorts each row of
    marks in quadratic time, so that 64,000 of them hold the interpreter for 7 s."""
    return unicodedata.normalize(form, LONG_RUN.sub(_without_excess, text))


def _without_excess(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for letter in run[0]:
        marks = marks + 1 if _is_mark(letter) else 0
        if marks <= MOST_MARKS:
            kept.append(letter)
    return "".join(kept)


@lru_cache(maxsize=4_096)
def _is_mark(letter: str) -> bool:
    """Whether the letter continues a row of marks; some letters do so only after decomposition."""
    return any(
        unicodedata.combining(part) for part in unicodedata.normalize("NFKD", letter)[:1]
    )
