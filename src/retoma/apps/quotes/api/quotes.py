"""Quotes, one at a time."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field, JsonValue, StrictStr, field_validator

from retoma.apps.quotes import store
from retoma.apps.quotes.api.how import (
    LONGEST,
    Has,
    QuoteId,
    QuoteLine,
    WaitingFor,
    line_told,
    read,
    routes,
    waiting_for,
)
from retoma.apps.quotes.model import QuoteKind, QuoteStatus
from retoma.engine.rules.states import State
from retoma.web import AHouse, AVisit, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.money import CostsShown, costs_shown
from retoma.web.replay import asked, written
from retoma.web.wire import LARGEST, Body, Limit, NextPage, Once, PageOf
from retoma.words import Language, say


class NewQuote(Body):
    """What is to be quoted."""

    descricao: Annotated[StrictStr, Field(min_length=1, max_length=LONGEST)]
    tipo: QuoteKind = QuoteKind.AUTO
    codigo: Annotated[StrictStr, Field(min_length=1, max_length=100)] | None = None

    @field_validator("descricao")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip() or "\0" in value:
            raise ValueError(say("says nothing"))
        return value.strip()

    @field_validator("codigo")
    @classmethod
    def _can_be_kept(cls, value: str | None) -> str | None:
        if value is not None and "\0" in value:
            raise ValueError(say("has a NUL character"))
        return value

    def wanted(self) -> store.NewQuote:
        return store.NewQuote(self.descricao, self.tipo, self.codigo)


class QuoteShown(QuoteLine):
    """All that is known of a quote."""

    last_heartbeat: datetime | None
    resume_data: JsonValue
    claude_payload_json: JsonValue
    google_shopping_response_json: JsonValue
    result: JsonValue
    error_message: str | None
    waiting_for: WaitingFor | None = Field(
        description="What somebody must put right before it goes on."
    )
    created_by: str
    job: int | None
    cost: CostsShown | None = Field(description="None: taken over as history, it has no job.")


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
    how: dict[str, Any] = {"lote": lote, "status": status, "worker": worker_id}
    how |= {"before": place and store.Place(*place), "n": limit + 1}
    found = await read(house, lambda tx: store.list_quotes(tx, **how))
    shown = [QuoteLine(**line_told(told)) for _, told in found[:limit]]
    last = found[limit - 1][0] if len(found) > limit else [None]
    return PageOf(items=shown, next=stamp.write(*last))


@routes.post("/api/quotes", status_code=201, responses={200: {"model": QuoteShown}})
async def add_quote(
    body: NewQuote, who: Operator, house: AHouse, response: Response, key: Once = None
) -> QuoteShown:
    """One quote, by itself."""
    made, new = await written(
        house,
        asked(key, who, "add_quote", body),
        lambda tx: store.add_quote(tx, body.wanted(), actor=who.name),
        lambda quote: _Made(id=quote),
        _Made,
    )
    response.status_code = 201 if new else 200
    return await shown(house, made.id)


class _Made(Body):
    id: int


@routes.get("/api/quotes/{quote}")
async def get_quote(quote: QuoteId, _: Viewer, house: AHouse, visit: AVisit) -> QuoteShown:
    """One quote: how far it is, what was found, what it costs."""
    return await shown(house, quote, visit.language)


@routes.post("/api/quotes/{quote}/cancel")
async def cancel_quote(quote: QuoteId, who: Operator, house: AHouse) -> QuoteShown:
    """It is not gone on with; asked twice it answers the same."""
    job = await read(house, lambda tx: store.job_of(tx, quote))
    await house.retoma.cancel(job, actor=who.name)
    return await shown(house, quote)


async def shown(house: Has, quote: int, language: Language | None = None) -> QuoteShown:
    told = await read(house, lambda tx: store.quote_seen(tx, quote))
    more = ("resume_data", "claude_payload_json", "google_shopping_response_json", "result")
    job = told["job"]
    return QuoteShown(
        **line_told(told),
        **{name: told[name] for name in more},
        last_heartbeat=store.time_told(told["last_heartbeat"]),
        error_message=await _message(house, told),
        waiting_for=await _waiting(house, job, language),
        created_by=told["created_by"],
        job=job,
        cost=None if job is None else costs_shown(await house.retoma.costs.of_job(job)),
    )


async def _waiting(house: Has, job: int | None, language: Language | None) -> WaitingFor | None:
    found = None if job is None else await house.retoma.get(job)
    if found is None or found.state is not State.PARKED:
        return None
    message = await read(house, lambda tx: store.parked_message(tx, found.id))
    return waiting_for(found.code or "", 1, message, language)


async def _message(house: Has, told: Mapping[str, Any]) -> str | None:
    """What was said when it ended in ERROR."""
    job = told["job"]
    if told["status"] != QuoteStatus.ERROR or job is None:
        return None
    causes = await house.retoma.dead_causes([job])
    return causes[job].message if job in causes else None
