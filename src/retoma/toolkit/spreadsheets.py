"""Read the first sheet of an XLSX file as a CSV text, within bounds, in a confined child process.

The workbook may declare nothing and call nobody; whatever it says of its own size is not believed.
"""

import csv
import io
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

from retoma.toolkit.zips import TooManyEntries, open_zip

MIB: Final = 1 << 20
WORKBOOK: Final = "xl/workbook.xml"
STRINGS: Final = "xl/sharedStrings.xml"
RELATIONS: Final = "xl/_rels/workbook.xml.rels"
MOST_UNPACKED: Final = 64 * MIB  # of one part, whatever the archive says of it
MOST_ELEMENTS: Final = 1_000_000  # of one part; about 5 s
MOST_TEXT: Final = 8 * MIB  # characters of all cells, and of all shared strings
MOST_STRINGS: Final = 500_000
MOST_COLUMNS: Final = 16_384  # of a sheet, by the format
MOST_RELATIONS: Final = 10_000
PIECE: Final = 256 * 1024
LOCKED: Final = 0x1  # the bit of an entry that is encrypted
LONGEST_INTEGER: Final = 15  # digits that a spreadsheet keeps
# What reading a broken archive raises, besides its own error.
BROKEN: Final = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError),
    *(OSError, RuntimeError, ValueError, LookupError, OverflowError, expat.ExpatError),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """The first sheet as CSV, one line for each of its rows; or why it cannot be read."""

    csv: str = ""
    refusal: str | None = None


class _Refused(Exception):
    """Ends the reading; its argument is the refusal."""


def read_sheet(path: str, most_rows: int) -> Sheet:
    """Return the rows of the first sheet; line n of the text is row n of the sheet.

    Refusals: `no_spreadsheet`, `locked`, `too_large`, `too_many_rows`, `broken`.
    """
    try:
        with Path(path).open("rb") as file, open_zip(file) as archive:
            return Sheet(csv=_Workbook(archive).first_sheet(most_rows))
    except _Refused as refused:
        return Sheet(refusal=str(refused))
    except TooManyEntries:
        return Sheet(refusal="too_large")
    except BROKEN:
        return Sheet(refusal="broken")


class _Workbook:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._parts = {each.filename: each for each in archive.infolist()}

    def first_sheet(self, most_rows: int) -> str:
        if WORKBOOK not in self._parts:
            raise _Refused("no_spreadsheet")
        sheets = _Sheets()
        self._parse(WORKBOOK, sheets)
        relations = _Relations()
        if RELATIONS in self._parts:
            self._parse(RELATIONS, relations)
        part = relations.targets.get(sheets.first or "")
        if part is None or part not in self._parts:
            raise _Refused("no_spreadsheet")
        strings = _SharedStrings()
        shared = relations.strings or STRINGS
        if shared in self._parts:
            self._parse(shared, strings)
        rows = _Rows(strings.texts, most_rows)
        self._parse(part, rows)
        return rows.out.getvalue()

    def _parse(self, part: str, reader: "_Reader") -> None:
        entry = self._parts[part]
        if entry.flag_bits & LOCKED:
            raise _Refused("locked")
        parser = expat.ParserCreate(namespace_separator="}")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = _counted(reader.begin)
        parser.EndElementHandler = lambda name: reader.end(_local(name))
        parser.CharacterDataHandler = reader.text
        unpacked = 0
        with self._archive.open(entry) as file:
            while piece := file.read(PIECE):
                unpacked += len(piece)
                if unpacked > MOST_UNPACKED:
                    raise _Refused("too_large")
                parser.Parse(piece, False)
            parser.Parse(b"", True)


def _refuse_doctype(*_: Any) -> None:
    raise _Refused("broken")


def _counted(
    begin: Callable[[str, Mapping[str, str]], None],
) -> Callable[[str, Mapping[str, str]], None]:
    left = MOST_ELEMENTS

    def counted(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise _Refused("too_large")
        begin(_local(name), attributes)

    return counted


def _local(name: str) -> str:
    return name.rpartition("}")[2]


class _Reader:
    """What the elements of one part mean."""

    def begin(self, name: str, attributes: Mapping[str, str], /) -> None: ...
    def end(self, name: str, /) -> None: ...
    def text(self, text: str, /) -> None: ...


class _Sheets(_Reader):
    """The first sheet that a person sees, else the first one: by the id of its relation."""

    def __init__(self) -> None:
        self.first: str | None = None
        self._is_visible = False

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        if name != "sheet" or self._is_visible:
            return
        is_visible = attributes.get("state", "visible") == "visible"
        if self.first is None or is_visible:
            ids = (value for key, value in attributes.items() if key.endswith("}id"))
            self.first, self._is_visible = next(ids, None), is_visible


class _Relations(_Reader):
    """Which part each id stands for."""

    def __init__(self) -> None:
        self.targets: dict[str, str] = {}
        self.strings: str | None = None

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        if name != "Relationship" or len(self.targets) >= MOST_RELATIONS:
            return
        target = posixpath.normpath(posixpath.join("/xl", attributes.get("Target", "")))[1:]
        self.targets[attributes.get("Id", "")] = target
        if attributes.get("Type", "").endswith("/sharedStrings"):
            self.strings = target


class _Text(_Reader):
    """Gathers the text of `t` elements; how a word is read aloud (`rPh`) is none."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._left = MOST_TEXT
        self._in_text = False
        self._in_phonetic = False

    def begin(self, name: str, _: Mapping[str, str]) -> None:
        if name == "rPh":
            self._in_phonetic = True
        self._in_text = name == "t" and not self._in_phonetic

    def end(self, name: str) -> None:
        self._in_text = False
        if name == "rPh":
            self._in_phonetic = False

    def text(self, text: str) -> None:
        if self._in_text:
            self._add(text)

    def _add(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise _Refused("too_large")
        self._parts.append(text)

    def _taken(self) -> str:
        text = "".join(self._parts)
        self._parts.clear()
        return text


class _SharedStrings(_Text):
    """Texts that cells name by their number."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def end(self, name: str) -> None:
        super().end(name)
        if name == "si":
            if len(self.texts) >= MOST_STRINGS:
                raise _Refused("too_large")
            self.texts.append(self._taken())


class _Rows(_Text):
    """The rows of a sheet, written as CSV as they come. A row without a value is an empty line."""

    def __init__(self, strings: list[str], most: int) -> None:
        super().__init__()
        self.out = io.StringIO()
        self._writer = csv.writer(self.out, quoting=csv.QUOTE_ALL, lineterminator="\n")
        self._strings = strings
        self._most = most
        self._written = 0  # rows
        self._row = 0  # its number, from 1
        self._cells: list[str] = []
        self._column = 0  # of the next cell, from 0
        self._type = "n"
        self._in_value = False
        self._room = MOST_TEXT  # characters that may still be written

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        super().begin(name, attributes)
        self._in_value = name == "v"
        if name == "row":
            self._row = _number(attributes.get("r"), self._row + 1)
            self._cells, self._column = [], 0
        elif name == "c":
            self._column = _column_of(attributes.get("r"), self._column)
            self._type = attributes.get("t", "n")
            self._taken()

    def end(self, name: str) -> None:
        super().end(name)
        self._in_value = False
        if name == "c":
            self._put(self._value(self._taken()))
            self._column += 1
        elif name == "row":
            self._end_row()

    def text(self, text: str) -> None:
        if self._in_value:
            self._add(text)
        else:
            super().text(text)

    def _value(self, text: str) -> str:
        match self._type:
            case "s":
                at = _number(text.strip(), -1)
                return self._strings[at] if 0 <= at < len(self._strings) else ""
            case "b":
                return "VERDADEIRO" if text.strip() == "1" else "FALSO"
            case "n":
                return _plain_number(text.strip())
            case _:
                return text

    def _put(self, value: str) -> None:
        value = _one_line(value)
        if not value:
            return
        if self._column >= MOST_COLUMNS:
            raise _Refused("too_large")
        gap = self._column - len(self._cells)
        self._room -= 3 * max(gap, 0) + len(value) + 3
        if self._room < 0:
            raise _Refused("too_large")
        if gap < 0:
            self._cells[self._column] = value
        else:
            self._cells += [""] * gap
            self._cells.append(value)

    def _end_row(self) -> None:
        if not self._cells:
            return
        if self._row <= self._written:
            raise _Refused("broken")
        if self._row > self._most:
            raise _Refused("too_many_rows")
        self.out.write("\n" * (self._row - self._written - 1))
        self._writer.writerow(self._cells)
        self._written = self._row
        self._cells = []


def _one_line(text: str) -> str:
    """A line of the text is a row of the sheet, so a cell has no line of its own."""
    return " ".join(text.replace("_x000D_", " ").splitlines()).strip()


def _plain_number(text: str) -> str:
    """`1001` of `1001.0` and of `1.001E3`; what is no number as it stands."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        return text
    if not value.is_finite() or abs(value.adjusted()) > LONGEST_INTEGER:
        return text
    whole = value.to_integral_value()
    return f"{whole:f}" if whole == value else f"{value.normalize():f}"


def _number(text: str | None, default: int) -> int:
    return (
        int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else default
    )


def _column_of(place: str | None, default: int) -> int:
    """The column of `AB12`, from 0."""
    letters = (place or "").rstrip("0123456789")
    if not letters or len(letters) > 3 or not (letters.isascii() and letters.isalpha()):
        return default
    column = 0
    for letter in letters.upper():
        column = 26 * column + ord(letter) - 64
    return column - 1
