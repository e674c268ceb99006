"""Lotes: quotes asked for together, as JSON or as a table, and their results as either."""

import csv
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, BinaryIO, Final

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field, StrictStr, ValidationError, field_validator

from retoma.access import Person
from retoma.apps.quotes import store
from retoma.apps.quotes.api.how import Has, LoteId, QuoteLine, line_told, read, routes
from retoma.apps.quotes.api.quotes import NewQuote
from retoma.apps.quotes.model import CODES, KIND, QuoteKind, QuoteStatus
from retoma.engine.ops.batches import Batch
from retoma.engine.rules.errors import BadInput, NotFound
from retoma.toolkit.tables import as_text_table, plain, read_rows
from retoma.toolkit.uploads import PIECE, in_thread, spooled
from retoma.web import AHouse, AVisit, House, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.files import XLSX, AsFile, list_of, listed_file
from retoma.web.flaws import flaws_of
from retoma.web.many import do_to_batch
from retoma.web.money import BudgetShown, CostsShown, budget_shown, costs_shown
from retoma.web.orders import Order
from retoma.web.problems import Flaw, Refusal
from retoma.web.replay import asked, written
from retoma.web.wire import Body, Limit, Moved, Name, NextPage, Once, PageOf, Shown
from retoma.words import Said, say

MOST: Final = 10_000  # quotes of one lote
MOST_LINES: Final = 10 * MOST  # of a table: blank ones too, and those of one description
LONGEST_NAME: Final = 200  # characters of what a lote is called
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
PAGE: Final = 1_000  # quotes read at a time for a file
BIGGEST: Final = 20 << 20  # bytes of a table
# What a table may call a kind of thing besides its name.
KINDS: Final = {
    **{str(each): each for each in QuoteKind},
    "automatico": QuoteKind.AUTO,
    "produto": QuoteKind.PRODUCT,
    "veiculo": QuoteKind.VEHICLE,
}
HEADINGS: Final = (
    "id",
    "codigo",
    "tipo",
    "descricao",
    "status",
    "price",
    "currency",
    "error_code",
    "motivo",
    "lojas",
    "links",
    "codigo_fipe",
    "completed_at",
)


class NewLote(Body):
    """Quotes that belong together, all of them or none."""

    nome: Name | None = None
    quotes: Annotated[list[NewQuote], Field(min_length=1, max_length=MOST)]
    orcamento: Annotated[StrictStr, Field(max_length=50, examples=["25 USD"])] | None = None

    @field_validator("quotes")
    @classmethod
    def _each_code_once(cls, quotes: list[NewQuote]) -> list[NewQuote]:
        met: set[str] = set()
        for each in quotes:
            if each.codigo in met:
                raise ValueError(say("name the codigo {code} twice", code=each.codigo))
            met |= {each.codigo} if each.codigo else set()
        return quotes


class LoteShown(Shown):
    """A lote and how far it is."""

    id: int
    nome: str
    total: int
    by_status: dict[QuoteStatus, int]
    progress_percentage: float
    finished: bool
    paused: bool
    eta_seconds: float | None
    cost: CostsShown
    orcamento: BudgetShown | None = Field(
        description="Once it is `exhausted` nothing more is paid for, and its quotes wait."
    )


class LoteImported(LoteShown):
    """A lote that a table became."""

    left_out: int = Field(description="Bad rows of the table, which were not imported.")


@routes.get("/api/lotes")
async def list_lotes(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[LoteShown]:
    """Lotes, the newest first."""
    stamp = Cursor("lotes", None)
    [before] = stamp.read(cursor, int) or [None]
    rows = await read(house, lambda tx: tx.all(store.LIST_LOTES, before=before, n=limit + 1))
    found = [await house.retoma.batch(id_) for (id_,) in rows[:limit]]
    shown = [await lote_told(house, each) for each in found]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(rows) > limit else None))


@routes.post("/api/lotes", status_code=201, responses={200: {"model": LoteShown}})
async def add_lote(
    body: NewLote, who: Operator, house: AHouse, response: Response, key: Once = None
) -> LoteShown:
    """All of them or none. With an Idempotency-Key asking again makes no second lote."""
    made, new = await written(
        house,
        asked(key, who, "add_lote", body),
        lambda tx: store.add_lote(
            tx,
            [each.wanted() for each in body.quotes],
            name=body.nome,
            budget=body.orcamento,
            actor=who.name,
        ),
        lambda added: _Made(id=added.lote or 0),
        _Made,
    )
    response.status_code = 201 if new else 200
    return await lote_told(house, await house.retoma.batch(made.id))


class _Made(Body):
    id: int


@routes.post(
    "/api/lotes/import",
    status_code=201,
    responses={200: {"model": LoteImported}},
    openapi_extra={
        "requestBody": {
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                XLSX: {"schema": {"type": "string", "format": "binary"}},
            },
            "required": True,
        }
    },
)
async def import_lote(
    request: Request,
    who: Operator,
    house: AHouse,
    response: Response,
    key: Once = None,
    nome: Annotated[
        str | None, Query(max_length=LONGEST_NAME, description="What it is called.")
    ] = None,
    orcamento: Annotated[
        str | None, Query(max_length=50, description="How much it may cost, as `25 USD`.")
    ] = None,
    so_boas: Annotated[
        bool, Query(description="Import the good rows, though others are bad.")
    ] = False,
) -> LoteImported:
    """A table with the columns `descricao`, and if you like `tipo` (`produto`, `veículo`) and `codigo`: an XLSX file,
    or CSV in UTF-8, UTF-16 or Windows-1252. The answer to a table with bad rows names them all, 200 at most. With an
    Idempotency-Key asking again makes no second lote."""
    async with spooled(request.stream()) as table:
        try:
            made, new = await take_table(
                house, table, who, name=nome, budget=orcamento, key=key, only_good=so_boas
            )
        except BadRows as error:
            flaws = [
                Flaw(f"line {each.line}: {each.column}", each.why) for each in error.table.bad
            ]
            more = {"bad": error.table.n_bad, "good": len(error.table.quotes)}
            raise Refusal("bad_input", error.args[0], flaws, more=more) from None
    response.status_code = 201 if new else 200
    told = await lote_told(house, await house.retoma.batch(made.id))
    return LoteImported(**told.model_dump(), left_out=made.left_out)


async def take_table(
    house: House,
    table: BinaryIO,
    who: Person,
    *,
    name: str | None,
    budget: str | None,
    key: str | None,
    only_good: bool = False,
) -> "tuple[Imported, bool]":
    """Add the rows of a table as a lote; return it, and whether it is new.

    Raises BadRows where some rows are bad, unless `only_good` leaves them out.
    """
    if len(name or "") > LONGEST_NAME:
        raise BadInput(say("a name has {most} characters at most", most=LONGEST_NAME))
    hashed, size = await in_thread(_sha256_of, table)
    asked_for = _Table(nome=name, orcamento=budget, so_boas=only_good, sha256=hashed)
    async with (
        house.room.hold(size),
        as_text_table(table, house.retoma.isolate, most=MOST_LINES) as text,
    ):
        found = await house.room.read(read_table, text)
        if found.n_bad and not (only_good and found.quotes):
            raise BadRows(found)
        return await written(
            house,
            asked(key, who, "import_lote", asked_for),
            lambda tx: store.add_lote(
                tx, found.quotes, name=name, budget=budget, actor=who.name
            ),
            lambda added: Imported(id=added.lote or 0, left_out=found.n_bad),
            Imported,
        )


class Imported(Body):
    """A lote that a table became, and how many of its rows were left out."""

    id: int
    left_out: int = 0


def _sha256_of(table: BinaryIO) -> tuple[str, int]:
    """And how many bytes it has."""
    made = sha256()
    while piece := table.read(PIECE):
        made.update(piece)
    size = table.tell()
    table.seek(0)
    return made.hexdigest(), size


class _Table(Body):
    """What a table is known by, when it comes again."""

    nome: str | None
    orcamento: str | None
    so_boas: bool
    sha256: str


@routes.get("/api/lotes/{lote}")
async def get_lote(lote: LoteId, _: Viewer, house: AHouse) -> LoteShown:
    """How far it is."""
    return await lote_told(house, await lote_of(house, lote))


@routes.post("/api/lotes/{lote}/cancel", responses={202: {"model": Moved}})
async def cancel_lote(
    lote: LoteId, who: Operator, house: AHouse, visit: AVisit, response: Response
) -> Moved:
    """What has not ended is not gone on with."""
    found = await lote_of(house, lote)
    order = Order(verb="cancel", actor=who.name, batch=lote)
    return await do_to_batch(house, found, order, visit, response)


@routes.get(
    "/api/lotes/{lote}/export",
    response_class=Response,
    responses=list_of("what came of a lote"),
)
async def export_lote(
    lote: LoteId,
    _: Viewer,
    house: AHouse,
    as_: AsFile = "csv",
) -> Response:
    """What came of it, in the order in which it was asked for."""
    await lote_of(house, lote)
    return await listed_file(house, as_, f"lote-{lote}", HEADINGS, results_of(house, lote))


class QuoteExported(QuoteLine):
    """A quote in a file: why it failed, and where its price comes from."""

    motivo: str | None
    lojas: str | None
    links: str | None
    codigo_fipe: str | None


def exported(told: Mapping[str, Any]) -> QuoteExported:
    """What a file says of a quote; of several shops the names and the links stand in one order."""
    result = told["result"] if isinstance(told["result"], dict) else {}
    sources = result.get("sources")
    used = [
        each
        for each in (sources if isinstance(sources, list) else [])
        if isinstance(each, dict) and each.get("used") is not False
    ]
    code = CODES.get(told["error_code"] or "")
    return QuoteExported(
        **line_told(dict(told)),
        motivo=None if code is None else code.meaning,
        lojas=_joined(used, "store"),
        links=_joined(used, "url"),
        codigo_fipe=_joined(used, "CodigoFipe"),
    )


def _joined(sources: Sequence[Mapping[str, Any]], name: str) -> str | None:
    return " | ".join(str(each[name]) for each in sources if each.get(name)) or None


async def results_of(house: Has, lote: int) -> AsyncIterator[list[QuoteExported]]:
    """What came of a lote, some of them at a time."""
    after = 0
    while True:
        how = {"lote": lote, "after": after, "n": PAGE}
        rows = await read(house, lambda tx, how=how: tx.all(store.EXPORT_QUOTES, **how))  # type: ignore[misc]
        yield [exported(store.named(store.LISTED, row)) for row in rows]
        if len(rows) < PAGE:
            return
        after = rows[-1][0]


async def lote_of(house: Has, lote: int) -> Batch:
    """A batch of quotes; NotFound where it is somebody else's."""
    found = await house.retoma.batch(lote)
    if found.kind != KIND:
        raise NotFound(say("there is no lote {lote}", lote=lote))
    return found


async def lote_told(house: Has, batch: Batch) -> LoteShown:
    progress = await batch.progress()
    budget = await house.retoma.budgets.of_batch(batch.id)
    by_status = await read(house, lambda tx: store.by_status(tx, batch.id, progress.counts))
    eta = progress.eta
    return LoteShown(
        id=batch.id,
        nome=batch.name,
        total=progress.total,
        by_status=by_status,
        progress_percentage=round(100 * progress.share, 1),
        finished=progress.finished,
        paused=progress.paused,
        eta_seconds=None if eta is None else eta.total_seconds(),
        cost=costs_shown(await house.retoma.costs.of_batch(batch.id)),
        orcamento=None if budget is None else budget_shown(budget),
    )


# — tables —


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """What is wrong with one row of a table."""

    line: int
    column: str
    why: Said


@dataclass(slots=True, kw_only=True)
class Table:
    """The quotes that a table asks for, and its rows that ask for none."""

    quotes: list[store.NewQuote]
    bad: list[BadRow]  # the first of them, at most MOST_BAD
    n_bad: int  # rows


class BadRows(BadInput):
    """Some rows cannot be imported, and nobody asked for the good ones alone."""

    def __init__(self, table: Table) -> None:
        super().__init__(bad_rows_said(table))
        self.table = table


def bad_rows_said(table: Table) -> Said:
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
    for number, row in _rows(file):
        quote, bad = row_read(number, row)
        if quote is not None and (first := _same_code(codes, number, quote.codigo)):
            bad = [_same_as(number, quote.codigo, first)]
        if bad:
            found.n_bad += 1
            found.bad += bad[: MOST_BAD - len(found.bad)]
        elif quote is not None:
            if len(found.quotes) >= MOST:
                raise BadInput(say("more than {most} quotes at a time", most=MOST))
            found.quotes.append(quote.wanted())
    if not found.quotes and not found.n_bad:
        raise BadInput(say("the table has no lines"))
    return found


def _same_code(codes: dict[str, int], number: int, code: str | None) -> int | None:
    """The line that has this code already."""
    if not code:
        return None
    first = codes.setdefault(code, number)
    return None if first == number else first


def _same_as(number: int, code: str | None, first: int) -> BadRow:
    why = say("{code} is that of line {first} already", code=code, first=first)
    return BadRow(line=number, column="codigo", why=why)


def _rows(file: BinaryIO) -> Iterator[tuple[int, dict[str, str]]]:
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


def row_read(number: int, row: Mapping[str, str]) -> tuple[NewQuote | None, list[BadRow]]:
    """What a row asks for, or all that is wrong with it."""
    told = {name: (row.get(name) or "").strip() for name in COLUMNS}
    flaws = [(name, why) for name in COLUMNS if (why := _spoiled(name, told[name]))]
    if row.get(MORE):
        flaws.append(
            ("descricao", say("has more cells than columns: quote what has a separator"))
        )
    if all(plain(told[name]) in ("", name) for name in COLUMNS) and any(told.values()):
        flaws = [("descricao", say("is the name of the column again"))]
    if flaws:
        return None, [BadRow(line=number, column=name, why=why) for name, why in flaws]
    given = {name: value for name, value in told.items() if value or name == "descricao"}
    if "tipo" in given:
        given["tipo"] = KINDS[plain(given["tipo"])]
    try:
        return NewQuote.model_validate(given), []
    except ValidationError as error:
        found = flaws_of(RequestValidationError(error.errors()))
        return None, [BadRow(line=number, column=each.path, why=each.why) for each in found]


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
