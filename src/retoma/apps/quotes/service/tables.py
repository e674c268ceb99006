"""Tables of quotes: what each row asks for, or everything that is wrong with it."""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from retoma.apps.quotes.model import QuoteKind
from retoma.apps.quotes.store import NewQuote
from retoma.engine.rules.errors import BadInput
from retoma.toolkit.tables import plain, read_rows
from retoma.words import Said, say

MOST: Final = 10_000  # quotes of one lote
MOST_LINES: Final = 10 * MOST  # of a table: blank ones too, and those of one description
LONGEST: Final = {"descricao": 10_000, "codigo": 100}  # characters of a cell
MOST_BAD: Final = 200  # rows of a table that are named as bad
MANGLED: Final = "\ufffd"  # what a browser writes for bytes that are no UTF-8
COLUMNS: Final = ("descricao", "tipo", "codigo")
MORE: Final = ""  # the cells of a row beyond its columns
NO_COLUMN: Final = say("the first line names no column `descricao`")
# What a spreadsheet shows in place of a value, in English and in Portuguese.
SHEET_ERROR: Final = re.compile(
    r"#(REF!|N/A|N/D|NAME\?|NOME\?|VALUE!|VALOR!|DIV/0!|NUM!|NÚM!|NULL!|NULO!)"
)
FORMULA: Final = re.compile(r"=[\w.+(-]")
SHORTENED: Final = re.compile(r"\d[.,]\d+E\+\d+", re.IGNORECASE)
# What a table may call a kind of thing besides its name.
KINDS: Final = {
    **{str(each): each for each in QuoteKind},
    "automatico": QuoteKind.AUTO,
    "produto": QuoteKind.PRODUCT,
    "veiculo": QuoteKind.VEHICLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """What is wrong with one row of a table."""

    line: int
    column: str
    why: Said


@dataclass(slots=True, kw_only=True)
class Table:
    """The quotes that a table asks for, and its rows that ask for none."""

    quotes: list[NewQuote]
    bad: list[BadRow]  # the first of them, at most MOST_BAD
    n_bad: int  # rows


class BadRows(BadInput):
    """Some rows cannot be imported, and nobody asked for the good ones alone."""

    def __init__(self, table: Table) -> None:
        super().__init__(_refusal_of(table))
        self.table = table


def _refusal_of(table: Table) -> Said:
    total = table.n_bad + len(table.quotes)
    if table.n_bad == 1:
        return say("1 row of {total} cannot be imported; nothing was imported", total=total)
    return say(
        "{n} rows of {total} cannot be imported; nothing was imported",
        n=table.n_bad,
        total=total,
    )


def read_table(file: BinaryIO) -> Table:
    """Read every row. Raises BadInput where the table as a whole cannot be read."""
    found = Table(quotes=[], bad=[], n_bad=0)
    codes: dict[str, int] = {}
    for number, row in _rows_of(file):
        quote, bad = read_row(number, row)
        if quote is not None and quote.code:
            first = codes.setdefault(quote.code, number)
            if first != number:
                why = say(
                    "{code} is that of line {first} already", code=quote.code, first=first
                )
                bad = [BadRow(line=number, column="codigo", why=why)]
        if bad:
            found.n_bad += 1
            found.bad += bad[: MOST_BAD - len(found.bad)]
        elif quote is not None:
            if len(found.quotes) >= MOST:
                raise BadInput(say("more than {most} quotes at a time", most=MOST))
            found.quotes.append(quote)
    if not found.quotes and not found.n_bad:
        raise BadInput(say("the table has no lines"))
    return found


def _rows_of(file: BinaryIO) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each row that says something: its cells by the names of their columns; more than those under MORE."""
    refusal = say("the table is neither UTF-8, UTF-16 nor Windows-1252")
    columns: list[str] | None = None
    try:
        for number, row in read_rows(file, most=MOST_LINES, refusal=refusal, strict=True):
            if columns is None:
                columns = _columns_of(row)
            elif any(cell.strip() for cell in row):
                cells = dict(zip(columns, row, strict=False))
                more = "".join(row[len(columns) :]).strip()
                yield number, {**cells, MORE: more} if more else cells
    except csv.Error as error:
        raise BadInput(say("the table cannot be read: {why}", why=str(error))) from None
    if columns is None:
        raise BadInput(NO_COLUMN)


def _columns_of(row: Sequence[str]) -> list[str]:
    columns = [plain(each) for each in row]
    if "descricao" not in columns:
        raise BadInput(NO_COLUMN)
    twice = next((each for each in COLUMNS if columns.count(each) > 1), None)
    if twice is not None:
        raise BadInput(say("the first line names the column {name} twice", name=twice))
    return columns


def read_row(number: int, row: Mapping[str, str]) -> tuple[NewQuote | None, list[BadRow]]:
    """Return what a row asks for, or everything that is wrong with it."""
    cells = {name: (row.get(name) or "").strip() for name in COLUMNS}
    flaws = [(name, why) for name in COLUMNS if (why := _spoiled(name, cells[name]))]
    if row.get(MORE):
        flaws.append(
            ("descricao", say("has more cells than columns: quote what has a separator"))
        )
    if all(plain(cells[name]) in ("", name) for name in COLUMNS) and any(cells.values()):
        flaws = [("descricao", say("is the name of the column again"))]
    if not flaws:
        flaws = [(name, why) for name in COLUMNS if (why := _wrong_length(name, cells[name]))]
    if flaws:
        return None, [BadRow(line=number, column=name, why=why) for name, why in flaws]
    kind = KINDS[plain(cells["tipo"])] if cells["tipo"] else QuoteKind.AUTO
    return NewQuote(cells["descricao"], kind, cells["codigo"] or None), []


def _wrong_length(name: str, value: str) -> Said | None:
    if name == "descricao" and not value:
        return say("is shorter than {least}", least=1)
    if len(value) > LONGEST.get(name, len(value)):
        return say("is longer than {most}", most=LONGEST[name])
    return None


def _spoiled(name: str, value: str) -> Said | None:
    """What a spreadsheet or a wrong encoding made of a cell: it is no longer what somebody wrote."""
    if MANGLED in value:
        return say("has characters that cannot be read: save the table as UTF-8 or as XLSX")
    if "\0" in value:
        return say("has a NUL character")
    if SHEET_ERROR.fullmatch(value):
        return say("is an error of the spreadsheet: {value}", value=value)
    if value.startswith("=") and FORMULA.match(value):
        return say("is a formula: copy its value")
    if name == "tipo" and value and plain(value) not in KINDS:
        return say("is none of `produto`, `veículo`, `automático`")
    if name == "codigo" and SHORTENED.fullmatch(value):
        return say(
            "was shortened by the spreadsheet to {value}: format the column as text",
            value=value,
        )
    if name == "descricao" and value and not any(each.isalnum() for each in value):
        return say("says nothing")
    return None
