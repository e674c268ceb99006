"""Read tables that people hand in, as their spreadsheets write them: row by row, within bounds."""

import codecs
import csv
import io
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, Final

from retoma.engine.errors import BadInput
from retoma.text import normalize
from retoma.words import Said, say

ENCODINGS: Final = ("utf-8-sig", "cp1252")  # the second is Brazil's, when nobody says otherwise
SEPARATORS: Final = (",", ";", "\t")
PIECE: Final = 64 * 1024  # bytes that are decoded at a time
LONGEST_ROW: Final = 64 * 1024  # characters, over all lines of the row
LONGEST_HEADING: Final = 200  # characters of a column's name


def read_rows(
    file: BinaryIO, *, most: int, refusal: Said, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the number of its last line.

    At most one row is held. Raises BadInput where the file is no text (`refusal`), a row is too long or
    more than `most` lines come, and csv.Error where quotes are wrong and `strict` forbids it.
    """
    text = io.TextIOWrapper(file, _encoding_of(file, refusal), newline="")
    try:
        lines = _Lines(text, most)
        for row in csv.reader(lines, delimiter=_separator_of(text), strict=strict):
            lines.end_row()
            yield lines.number, row
    finally:
        with suppress(ValueError):  # the caller has closed the file, which is the caller's
            text.detach()


def plain(word: str) -> str:
    """The name of a column without its accents and capitals."""
    parts = normalize("NFD", word[: LONGEST_HEADING + 1].strip().casefold())
    return "".join(each for each in parts if not unicodedata.combining(each))


class _Lines:
    """The lines of a text, counted."""

    def __init__(self, text: io.TextIOWrapper, most: int) -> None:
        self._text = text
        self._most = most
        self._left = LONGEST_ROW
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        while line := self._text.readline(self._left + 1):
            self.number += 1
            self._left -= len(line)
            if self._left < 0:
                raise BadInput(
                    say(
                        "line {n}: a row has at most {most} characters",
                        n=self.number,
                        most=LONGEST_ROW,
                    )
                )
            if self.number > self._most:
                raise BadInput(say("more than {most} lines at a time", most=self._most))
            yield line

    def end_row(self) -> None:
        self._left = LONGEST_ROW


def _encoding_of(file: BinaryIO, refusal: Said) -> str:
    """The first encoding in which the whole file can be read; the file is at its start again."""
    for encoding in ENCODINGS:
        file.seek(0)
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            while piece := file.read(PIECE):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            continue
        file.seek(0)
        return encoding
    raise BadInput(refusal)


def _separator_of(text: io.TextIOWrapper) -> str:
    """The separator that the first line has most often."""
    first = text.readline(LONGEST_ROW)
    text.seek(0)
    return max(SEPARATORS, key=first.count)
