"""Lotes: quotes asked for together, as JSON or as a table, and their results as either."""

from typing import Annotated

from fastapi import Query, Request, Response

from retoma.apps.quotes.api.wire import LoteId, LoteImported, LoteShown, NewLote, routes
from retoma.apps.quotes.service import lotes
from retoma.apps.quotes.service.tables import BadRows
from retoma.toolkit.uploads import spooled
from retoma.web import AHouse, AVisit, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.files import XLSX, AsFile, list_of, listed_file
from retoma.web.many import moved_shown
from retoma.web.problems import Flaw, Refusal
from retoma.web.wire import Limit, Moved, NextPage, Once, PageOf


@routes.get("/api/lotes")
async def list_lotes(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[LoteShown]:
    """Lotes, the newest first."""
    stamp = Cursor("lotes", None)
    [before] = stamp.read(cursor, int) or [None]
    found, last = await lotes.list_lotes(house.retoma, limit=limit, before=before)
    shown = [LoteShown.model_validate(each) for each in found]
    return PageOf(items=shown, next=stamp.write(last))


@routes.post("/api/lotes", status_code=201, responses={200: {"model": LoteShown}})
async def add_lote(
    body: NewLote, who: Operator, house: AHouse, response: Response, key: Once = None
) -> LoteShown:
    """All of them or none. With an Idempotency-Key asking again makes no second lote."""
    wanted = [each.wanted() for each in body.quotes]
    made = await lotes.add_lote(
        house.retoma, wanted, actor=who.name, name=body.nome, budget=body.orcamento, key=key
    )
    response.status_code = 201 if made.is_new else 200
    return LoteShown.model_validate(await lotes.get_lote(house.retoma, made.id))


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
        str | None, Query(max_length=lotes.LONGEST_NAME, description="What it is called.")
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
    async with spooled(request.stream()) as file:
        try:
            made, table = await lotes.import_table(
                house.retoma,
                file,
                memory=house.room,
                actor=who.name,
                name=nome,
                budget=orcamento,
                only_good=so_boas,
                key=key,
            )
        except BadRows as error:
            flaws = [
                Flaw(f"line {each.line}: {each.column}", each.why) for each in error.table.bad
            ]
            more = {"bad": error.table.n_bad, "good": len(error.table.quotes)}
            raise Refusal("bad_input", error.args[0], flaws, more=more) from None
    response.status_code = 201 if made.is_new else 200
    shown = LoteShown.model_validate(await lotes.get_lote(house.retoma, made.id))
    return LoteImported.model_construct(**dict(shown), left_out=table.n_bad)


@routes.get("/api/lotes/{lote}")
async def get_lote(lote: LoteId, _: Viewer, house: AHouse) -> LoteShown:
    """How far it is."""
    return LoteShown.model_validate(await lotes.get_lote(house.retoma, lote))


@routes.post("/api/lotes/{lote}/cancel", responses={202: {"model": Moved}})
async def cancel_lote(
    lote: LoteId, who: Operator, house: AHouse, visit: AVisit, response: Response
) -> Moved:
    """What has not ended is not gone on with."""
    done = await lotes.cancel_lote(house.retoma, lote, actor=who.name, context=visit)
    return moved_shown(done, response)


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
    pages = lotes.export_lote(house.retoma, lote)
    return await listed_file(house, as_, f"lote-{lote}", lotes.HEADINGS, pages)
