"""Normalize text of strangers in linear time."""

import re
import unicodedata
from functools import lru_cache
from typing import Final, Literal

# Unicode's "stream-safe" format (UAX 15) allows as many in a row; no language needs ten.
MOST_MARKS: Final = 30
# A shorter run cannot hold so many marks that sorting them takes long.
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
    """Whether it joins the row of marks before it; some letters do so only when they are taken apart."""
    return any(
        unicodedata.combining(each) for each in unicodedata.normalize("NFKD", letter)[:1]
    )
