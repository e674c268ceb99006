"""What is left of a text that is too long: two thirds from its beginning, one third from its end."""

import re
from typing import Final

HEAD: Final = 2 / 3  # what a document is stands at its top; how it ends says the rest
GAP: Final = "\n\n[… {n} caracteres omitidos …]\n\n"

# What no database keeps, or no reader shows: NUL and its like, halves of characters, non-characters.
UNKEPT: Final = re.compile("[\0-\x08\x0b-\x1f\x7f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
LINES: Final = re.compile(r"\n{3,}")


def cut_text(text: str, most: int) -> tuple[str, int]:
    """At most `most` characters of it (and the mark of the gap), and how many were left out."""
    if len(text) <= most:
        return text, 0
    head = int(most * HEAD)
    left_out = len(text) - most
    return text[:head] + GAP.format(n=left_out) + text[len(text) - (most - head) :], left_out


def clean_text(text: str) -> str:
    """As it can be kept: one kind of line ends, no characters that nobody may store."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", "\n")
    kept = UNKEPT.sub("", lines).split("\n")
    # Line by line: to look by an expression for blanks that end one takes the square of their number.
    return LINES.sub("\n\n", "\n".join([line.rstrip() for line in kept])).strip()
