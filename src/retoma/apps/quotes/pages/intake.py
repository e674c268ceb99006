"""The page by which quotes come in: a table, or descriptions as they are pasted. All of it or nothing."""

from http import HTTPStatus

from fastapi import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from retoma.apps.quotes.model import QuoteKind
from retoma.apps.quotes.pages.presenters import KINDS
from retoma.apps.quotes.service import lotes, quotes
from retoma.apps.quotes.service.tables import MOST, BadRows, read_row
from retoma.apps.quotes.store import NewQuote
from retoma.engine.rules.errors import BadInput
from retoma.toolkit.uploads import in_thread, spooled_form
from retoma.web.pages.asked import filled
from retoma.web.pages.kit import ALooker, Looker
from retoma.web.pages.route import form_of, page_router
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import Body, Name, Once
from retoma.words import say

routes = page_router()


class LoteForm(Body):
    """The fields of a new lote beside its quotes."""

    nome: Name | None = None


@routes.get("/quotes/import")
async def show(_: Viewer, who: ALooker) -> Response:
    return who.answer("quotes/import.html", kinds=QuoteKind, words=KINDS, most=MOST)


@routes.post("/quotes/import")
async def take_in(
    actor: Operator, who: ALooker, request: Request, key: Once = None
) -> Response:
    """ "Importar": of a table with bad rows nothing is taken, unless the good ones are asked for."""
    try:
        async with spooled_form(request.stream(), "text") as (table, fields):
            made, _ = await lotes.import_table(
                who.house.retoma,
                table,
                memory=who.house.room,
                actor=actor.name,
                name=fields.get("nome") or None,
                budget=fields.get("orcamento") or None,
                key=key,
                only_good=fields.get("so_boas") == "yes",
            )
    except BadInput as error:
        if not who.htmx:
            raise
        return _refused(who, error)
    return led(who, f"/quotes/lotes/{made.id}")


@routes.post("/quotes/new")
async def add(actor: Operator, who: ALooker, request: Request, key: Once = None) -> Response:
    """One line is a quote by itself, several are a lote."""
    form = await form_of(request)
    wanted = await in_thread(_pasted, form.one("descricoes") or "", form.one("tipo"))
    if len(wanted) == 1:
        quote = await quotes.add_quote(who.house.retoma, wanted[0], actor=actor.name, key=key)
        return led(who, f"/quotes/{quote.id}")
    name = filled(LoteForm, {"nome": form.one("nome")}).nome
    lote = await lotes.add_lote(who.house.retoma, wanted, actor=actor.name, name=name, key=key)
    return led(who, f"/quotes/lotes/{lote.id}")


def _pasted(descriptions: str, kind: str | None) -> list[NewQuote]:
    """One quote for each line that says something."""
    lines = [
        (number, line)
        for number, line in enumerate(descriptions.splitlines(), start=1)
        if line.strip()
    ]
    if not lines:
        raise BadInput(say("no description was given; nothing was changed"))
    if len(lines) > MOST:
        raise BadInput(say("more than {most} quotes at a time", most=MOST))
    wanted = []
    for number, line in lines:
        quote, bad = read_row(number, {"descricao": line, "tipo": kind or ""})
        if quote is None:
            [first, *_] = bad
            raise BadInput(
                say("line {n}: {column} {why}", n=number, column=first.column, why=first.why)
            )
        wanted.append(quote)
    return wanted


def led(who: Looker, address: str) -> Response:
    """To where the new thing is seen."""
    if who.htmx:
        return Response(status_code=204, headers={"HX-Redirect": address})
    return RedirectResponse(address, status_code=303)


def _refused(who: Looker, error: BadInput) -> Response:
    table = error.table if isinstance(error, BadRows) else None
    why = who.view.tell(error.args[0])
    html = who.pages.render("quotes/import_result.html", who.view, why=why, table=table)
    return HTMLResponse(
        html,
        status_code=int(HTTPStatus.UNPROCESSABLE_ENTITY),
        headers={"Cache-Control": "no-store"},
    )
