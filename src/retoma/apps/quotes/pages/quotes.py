"""Quotes and one of them: its way by the checkpoints, what was found where, and what it ends with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Final

from fastapi import Depends, Path
from starlette.responses import Response

from retoma.apps.quotes.model import QuoteStatus, meanings_in
from retoma.apps.quotes.pages.lotes import StatusOf, list_page
from retoma.apps.quotes.pages.plot import Plot, plot_of
from retoma.apps.quotes.pages.presenters import (
    CONCERN,
    FIELDS,
    KINDS,
    LOOKS,
    METHODS,
    format_price,
    format_spent,
    render_quote_rows,
)
from retoma.apps.quotes.pages.sources import WHY, Source, sources_of
from retoma.apps.quotes.pages.trail import branch_of, trail_of
from retoma.apps.quotes.service import quotes, recovery
from retoma.apps.quotes.service.quotes import Quote
from retoma.engine.query import PAGE as MOST
from retoma.engine.query import EvidenceSeen, JobSeen
from retoma.engine.rules.states import State
from retoma.web.pages.asked import CursorOf
from retoma.web.pages.job import BAD, PICTURES
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, page_router, serve_screen
from retoma.web.sign_in import Operator, Viewer
from retoma.web.wire import LARGEST
from retoma.words import say

routes = page_router()

QuoteId = Annotated[int, Path(ge=1, le=LARGEST)]
QUOTES: Final = "/quotes"
OPEN: Final = (QuoteStatus.PENDING, QuoteStatus.PROCESSING)


# — all of them —


@dataclass(frozen=True, slots=True)
class QuotesScreen(Screen):
    """The newest quotes, of any lote and of none."""

    status: QuoteStatus | None = None
    cursor: str | None = None

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        found, following = await list_page(
            self.pages.house.retoma, self.cursor, lote=None, status=self.status
        )
        rows = render_quote_rows(self.pages, self.view, found, mixed=True)
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        nothing, *way = self._nothing()
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=nothing,
            way=(way[0], way[1]),
            following=following and address(self.status, following),
            first=self.cursor and address(self.status),
        )
        return [drawn("rows", table, rows), turns]

    def _nothing(self) -> tuple[str, str, str]:
        """Why the list is empty; what to do about it, and where."""
        if self.status is None:
            why = say("No quotes yet. Import a table, or paste what is to be quoted.")
            return why, say("New quote"), "/quotes/import#new"
        why = say("No quote is {status} now.", status=self.status)
        return why, say("Clear"), QUOTES


def address(status: QuoteStatus | None, cursor: str | None = None) -> str:
    return QUOTES + query_of({"status": status, "cursor": cursor})


def quotes_screen(
    who: ALooker, status: StatusOf = None, cursor: CursorOf = None
) -> QuotesScreen:
    return QuotesScreen(who.pages, who.view, status, cursor)


AList = Annotated[QuotesScreen, Depends(quotes_screen)]


@routes.get("/quotes")
async def show_all(_: Viewer, who: ALooker, screen: AList) -> Response:
    return await who.page(
        screen, "quotes/quotes.html", chosen=screen.status, looks=LOOKS, link=address
    )


serve_screen(routes, "/quotes", quotes_screen)


# — one —


@dataclass(frozen=True, slots=True)
class QuoteScreen(Screen):
    """One quote."""

    quote: int
    job: int | None  # None: it was taken over as history, and moves no more

    @property
    def concern(self) -> Concern:
        return Concern(job=self.job or 0)

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        quote = await quotes.get_quote(retoma, self.quote, self.view.language)
        seen, evidence = await self._of_job()
        sources = sources_of(quote, evidence)
        given: dict[str, Any] = {
            "quote": quote,
            "look": LOOKS[quote.status],
            "price": None if quote.price is None else format_price(self.view, quote.price),
            "spent": format_spent(self.view, quote.cost or ()),
            "costs": quote.cost or (),
            "seen": seen,
            "names": {each.boot: each.name for each in await retoma.runners.list()},
            "failure": _failure(quote, seen),
            "recoverable": seen is not None and await recovery.is_recoverable(retoma, seen.job),
            "open": quote.status in OPEN and not (seen and seen.job.cancel_at),
            "trail": _trail(quote, seen),
            "said": _said(quote),
            "fields": FIELDS,
            "kinds": KINDS,
            "methods": METHODS,
            "meanings": meanings_in(self.view.language),
            "sources": sources,
            "why": WHY,
            "reais": partial(format_price, self.view),
            "plot": _plot(quote, sources),
            "pictures": PICTURES,
        }
        parts = ("head", "trail", "prices", "evidence", "side")
        return [
            drawn(
                f"quote-{part}",
                self.pages.render(f"quotes/quote_{part}.html", self.view, **given),
            )
            for part in parts
        ]

    async def _of_job(self) -> tuple[JobSeen | None, Sequence[EvidenceSeen]]:
        if self.job is None:
            return None, ()
        retoma = self.pages.house.retoma
        return await retoma.see(self.job, limit=MOST), await retoma.evidence.list(self.job)


def _failure(quote: Quote, seen: JobSeen | None) -> tuple[str, str] | None:
    """By what it ended or was parked, or the last attempt failed: code and message."""
    if quote.waiting_for is not None:
        return quote.waiting_for.code, quote.waiting_for.message or ""
    if seen is None or seen.job.state is State.DONE:
        return None
    for event in seen.events:
        if event.type in BAD and isinstance(event.details, dict):
            told = event.details
            return str(told.get("code") or event.type), str(told.get("message") or "")
    return None


def _trail(quote: Quote, seen: JobSeen | None) -> list[Any]:
    at = quote.processing_checkpoint
    return trail_of(
        quote.status,
        at,
        branch_of(quote.tipo, at, quote.claude_payload_json),
        began=quote.started_at,
        ended=quote.completed_at,
        steps=seen.steps if seen else (),
    )


def _said(quote: Quote) -> Mapping[str, Any] | None:
    """What the analysis says, as it said it."""
    payload = quote.claude_payload_json
    if not isinstance(payload, dict):
        return None
    said = payload.get("said")
    return {"tool": payload.get("tool"), **(said if isinstance(said, dict) else payload)}


def _plot(quote: Quote, sources: Sequence[Source]) -> Plot | None:
    if quote.price is None:
        return None
    prices = [
        (each.store, each.price, each.used is not False) for each in sources if each.price
    ]
    return plot_of(quote.price, prices)


async def quote_screen(quote: QuoteId, who: ALooker) -> QuoteScreen:
    found = await quotes.get_quote(who.house.retoma, quote)
    return QuoteScreen(who.pages, who.view, quote, found.job)


AScreen = Annotated[QuoteScreen, Depends(quote_screen)]


@routes.get("/quotes/{quote}")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    return await who.page(screen, "quotes/quote.html", number=screen.quote)


serve_screen(routes, "/quotes/{quote}", quote_screen)


@routes.post("/quotes/{quote}/recover")
async def recover(quote: QuoteId, actor: Operator, who: ALooker) -> Response:
    """ "Recuperar"."""
    await recovery.recover_quote(who.house.retoma, quote, actor=actor.name)
    said = say("quote {quote} goes on where it stopped", quote=quote)
    return did(who, who.view.tell(said), f"{QUOTES}/{quote}")


@routes.post("/quotes/{quote}/cancel")
async def cancel(quote: QuoteId, actor: Operator, who: ALooker) -> Response:
    """ "Cancelar"."""
    found = await quotes.cancel_quote(who.house.retoma, quote, actor=actor.name)
    if found.status is QuoteStatus.CANCELED:
        said = say("quote {quote} is canceled", quote=quote)
    else:
        said = say("quote {quote} was asked to end", quote=quote)
    return did(who, who.view.tell(said), f"{QUOTES}/{quote}")
