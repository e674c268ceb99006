"""Read tables that people hand in, as their spreadsheets write them: row by row, within bounds."""

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import BinaryIO, Final

from retoma.engine.isolation.isolate import ChildDied, Isolate
from retoma.engine.isolation.off_loop import off_loop
from retoma.engine.rules.errors import BadInput
from retoma.text import normalize
from retoma.toolkit.spreadsheets import Sheet, read_sheet
from retoma.words import Said, say

ENCODINGS: Final = ("utf-8-sig", "cp1252")  # the second is Brazil's, when nobody says otherwise
UTF_16: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
SEPARATORS: Final = (",", ";", "\t")
DIRECTIVE: Final = re.compile(r'(?i)"?sep=([^\w\s"]|\t)"?[\r\n]*\Z')  # Excel's own first line
QUOTED: Final = re.compile(r'"[^"]*"')
ZIP: Final = b"PK\x03\x04"  # with which an XLSX file begins
OLE: Final = b"\xd0\xcf\x11\xe0"  # an XLS file, or an XLSX file with a password
PIECE: Final = 64 * 1024  # bytes that are decoded at a time
LONGEST_ROW: Final = 64 * 1024  # characters, over all lines of the row
LONGEST_HEADING: Final = 200  # characters of a column's name


OLD: Final = say(
    "this spreadsheet is in the old XLS format or asks for a password: save it as XLSX without a password,"
    " or as CSV"
)
REFUSALS: Final[Mapping[str | None, Said]] = {
    "no_spreadsheet": say("this file is no XLSX spreadsheet: save it as XLSX or as CSV"),
    "locked": OLD,
    "too_large": say("the spreadsheet unpacks to too much: save it as CSV, or in parts"),
    "broken": say("the spreadsheet is damaged: open it, and save it again as XLSX or as CSV"),
}


@asynccontextmanager
async def as_text_table(
    file: BinaryIO, isolate: Isolate, *, most: int
) -> AsyncIterator[BinaryIO]:
    """Yield the table as text: an XLSX file as CSV, where line n is row n of its first sheet; another as it is.

    A confined child process reads the XLSX file. Raises BadInput where it cannot be read, or has more than
    `most` rows.
    """
    start = file.read(len(ZIP))
    file.seek(0)
    if start == OLE:
        raise BadInput(OLD)
    if start != ZIP:
        yield file
        return
    content = file.read()
    try:
        sheet: Sheet = await isolate.read(read_sheet, content, most)
    except (ChildDied, RuntimeError, TimeoutError):  # it took more than a child may
        raise BadInput(REFUSALS["too_large"]) from None
    del content
    if sheet.refusal == "too_many_rows":
        raise BadInput(say("more than {most} lines at a time", most=most))
    if sheet.refusal is not None:
        raise BadInput(REFUSALS[sheet.refusal])
    with io.BytesIO(await off_loop(len(sheet.csv), sheet.csv.encode)) as table:
        yield table


def read_rows(
    file: BinaryIO, *, most: int, refusal: Said, strict: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with the number of its last line.

    At most one row is held. Raises BadInput where the file is no text (`refusal`), a row is too long or
    more than `most` lines come, and csv.Error where quotes are wrong and `strict` forbids it.
    """
    text = io.TextIOWrapper(file, _encoding_of(file, refusal), newline="")
    try:
        separator, is_directive = _separator_of(text)
        lines = _Lines(text, most, first=int(is_directive))
        for row in csv.reader(lines, delimiter=separator, strict=strict):
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

    def __init__(self, text: io.TextIOWrapper, most: int, first: int) -> None:
        self._text = text
        self._most = most
        self._left = LONGEST_ROW
        self.number = first

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
    start = file.read(2)
    known = (UTF_16[start],) if start in UTF_16 else ENCODINGS
    for encoding in known:
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


def _separator_of(text: io.TextIOWrapper) -> tuple[str, bool]:
    """The separator, and whether the first line only names it.

    It is the one that the first line names (`sep=;`), else the one that the first line has most often
    outside of quotes.
    """
    first = text.readline(LONGEST_ROW)
    if named := DIRECTIVE.match(first):
        return named[1], True
    text.seek(0)
    plain_first = QUOTED.sub("", first)
    return max(SEPARATORS, key=plain_first.count), False
