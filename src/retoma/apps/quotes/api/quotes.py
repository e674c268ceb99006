"""Quotes, one at a time."""

from typing import Annotated

from fastapi import Query, Response

from retoma.apps.quotes import store
from retoma.apps.quotes.api.wire import NewQuote, QuoteId, QuoteLine, QuoteShown, routes
from retoma.apps.quotes.model import QuoteStatus
from retoma.apps.quotes.service import quotes
from retoma.web import AHouse, AVisit, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.wire import LARGEST, Limit, NextPage, Once, PageOf


@routes.get("/api/quotes")
async def list_quotes(
    _: Viewer,
    house: AHouse,
    lote: Annotated[
        int | None, Query(ge=1, le=LARGEST, description="Only of this lote.")
    ] = None,
    status: Annotated[QuoteStatus | None, Query(description="Only in this status.")] = None,
    worker_id: Annotated[
        str | None, Query(max_length=200, description="Only what runners of this name hold.")
    ] = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[QuoteLine]:
    """Quotes, the newest first."""
    stamp = Cursor("quotes", [lote, status, worker_id])
    place = stamp.read(cursor, int, int)
    found, end = await quotes.list_quotes(
        house.retoma,
        limit=limit,
        lote=lote,
        status=status,
        worker=worker_id,
        before=store.Place(*place) if place else None,
    )
    shown = [QuoteLine.model_validate(each) for each in found]
    return PageOf(items=shown, next=end and stamp.write(*end))


@routes.post("/api/quotes", status_code=201, responses={200: {"model": QuoteShown}})
async def add_quote(
    body: NewQuote, who: Operator, house: AHouse, response: Response, key: Once = None
) -> QuoteShown:
    """One quote, by itself."""
    made = await quotes.add_quote(house.retoma, body.wanted(), actor=who.name, key=key)
    response.status_code = 201 if made.is_new else 200
    return QuoteShown.model_validate(await quotes.get_quote(house.retoma, made.id))


@routes.get("/api/quotes/{quote}")
async def get_quote(quote: QuoteId, _: Viewer, house: AHouse, visit: AVisit) -> QuoteShown:
    """One quote: how far it is, what was found, what it costs."""
    return QuoteShown.model_validate(
        await quotes.get_quote(house.retoma, quote, visit.language)
    )


@routes.post("/api/quotes/{quote}/cancel")
async def cancel_quote(quote: QuoteId, who: Operator, house: AHouse) -> QuoteShown:
    """It is not gone on with; asked twice it answers the same."""
    return QuoteShown.model_validate(
        await quotes.cancel_quote(house.retoma, quote, actor=who.name)
    )
