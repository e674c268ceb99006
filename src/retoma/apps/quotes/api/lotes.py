"""Lotes: quotes asked for together, as JSON or as a table, and their results as either."""

import csv
from collections.abc import Iterator, Mapping, Sequence
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
from retoma.apps.tables import plain, read_rows
from retoma.apps.uploads import PIECE, in_thread, spooled
from retoma.engine.batch import Batch
from retoma.engine.errors import BadInput, NotFound
from retoma.web import AHouse, AVisit, House, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.files import AsFile, csv_of, listed_file
from retoma.web.flaws import flaws_of
from retoma.web.many import do_to_batch
from retoma.web.money import BudgetShown, CostsShown, budget_shown, costs_shown
from retoma.web.orders import Order
from retoma.web.replay import asked, written
from retoma.web.wire import Body, Limit, Moved, Name, NextPage, Once, PageOf, Shown
from retoma.words import say

MOST: Final = 10_000  # quotes of one lote
MOST_LINES: Final = 10 * MOST  # of a table: blank ones too, and those of one description
LONGEST_NAME: Final = 200  # characters of what a lote is called
MANGLED: Final = "\ufffd"  # what a browser writes for bytes that are no UTF-8
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
    responses={200: {"model": LoteShown}},
    openapi_extra={
        "requestBody": {
            "content": {"text/csv": {"schema": {"type": "string"}}},
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
) -> LoteShown:
    """A table with the columns `descricao`, and if you like `tipo` (`produto`, `veículo`) and `codigo`; in UTF-8, or as
    a spreadsheet writes it in Windows-1252. With an Idempotency-Key asking again makes no second lote."""
    async with spooled(request.stream()) as table:
        made, new = await take_table(house, table, who, name=nome, budget=orcamento, key=key)
    response.status_code = 201 if new else 200
    return await lote_told(house, await house.retoma.batch(made))


async def take_table(
    house: House,
    table: BinaryIO,
    who: Person,
    *,
    name: str | None,
    budget: str | None,
    key: str | None,
) -> tuple[int, bool]:
    """Add all lines of a table or none; return the number of the lote, and whether it is new."""
    if len(name or "") > LONGEST_NAME:
        raise BadInput(say("a name has {most} characters at most", most=LONGEST_NAME))
    hashed, size = await in_thread(_sha256_of, table)
    async with house.room.hold(size):
        wanted = await house.room.read(read_table, table)
        made, new = await written(
            house,
            asked(key, who, "import_lote", _Table(nome=name, orcamento=budget, sha256=hashed)),
            lambda tx: store.add_lote(tx, wanted, name=name, budget=budget, actor=who.name),
            lambda added: _Made(id=added.lote or 0),
            _Made,
        )
    return made.id, new


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
    "/api/lotes/{lote}/export", response_class=Response, responses=csv_of("what came of a lote")
)
async def export_lote(
    lote: LoteId,
    _: Viewer,
    house: AHouse,
    as_: AsFile = "csv",
) -> Response:
    """What came of it, in the order in which it was asked for."""
    await lote_of(house, lote)
    told = await _results(house, lote)
    return listed_file(as_, f"lote-{lote}", HEADINGS, told)


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


async def _results(house: House, lote: int) -> list[QuoteExported]:
    told: list[QuoteExported] = []
    after = 0
    while True:
        how = {"lote": lote, "after": after, "n": PAGE}
        rows = await read(house, lambda tx, how=how: tx.all(store.EXPORT_QUOTES, **how))  # type: ignore[misc]
        told += [exported(store.named(store.LISTED, row)) for row in rows]
        if len(rows) < PAGE:
            return told
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


def read_table(table: BinaryIO) -> list[store.NewQuote]:
    """Read every line, or raise BadInput for the first that is wrong: of a table with a mistake nothing is taken."""
    quotes: dict[int, NewQuote] = {}
    for number, row in _rows(table):
        if len(quotes) >= MOST:
            raise BadInput(say("more than {most} quotes at a time", most=MOST))
        quotes[number] = quote_at(number, row)
    if not quotes:
        raise BadInput(say("the table has no lines"))
    _check_codes(quotes)
    return [each.wanted() for each in quotes.values()]


def _check_codes(quotes: Mapping[int, NewQuote]) -> None:
    met: dict[str, int] = {}
    for number, each in quotes.items():
        first = met.setdefault(each.codigo or "", number)
        if each.codigo and first != number:
            raise BadInput(
                say(
                    "line {n}: codigo {code} is that of line {first} already",
                    n=number,
                    code=each.codigo,
                    first=first,
                )
            )


def _rows(table: BinaryIO) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each row that says something: its cells by the names of their columns."""
    refusal = say("the table is neither UTF-8 nor Windows-1252")
    columns: list[str] | None = None
    try:
        for number, row in read_rows(table, most=MOST_LINES, refusal=refusal, strict=True):
            if columns is None:
                columns = [plain(each) for each in row]
                if "descricao" not in columns:
                    break
            elif any(cell.strip() for cell in row):
                if any(MANGLED in cell for cell in row):
                    raise BadInput(
                        say("the table has characters that cannot be read: save it as UTF-8")
                    )
                yield number, dict(zip(columns, row, strict=False))
    except csv.Error as error:
        raise BadInput(say("the table cannot be read: {why}", why=str(error))) from None
    if columns is None or "descricao" not in columns:
        raise BadInput(say("the first line names no column `descricao`"))


def quote_at(number: int, row: Mapping[str, Any]) -> NewQuote:
    """What a line asks for; where that makes no sense, its number is said."""
    told = {name: (row.get(name) or "").strip() for name in ("descricao", "tipo", "codigo")}
    given = {name: value for name, value in told.items() if value or name == "descricao"}
    if "tipo" in given:
        given["tipo"] = KINDS.get(plain(given["tipo"]), given["tipo"])
    try:
        return NewQuote.model_validate(given)
    except ValidationError as error:
        [first, *_] = flaws_of(RequestValidationError(error.errors()))
        raise BadInput(
            say("line {n}: {where} {why}", n=number, where=first.path, why=first.why)
        ) from None
