"""Lotes and one of them: how far it is, what it costs, what went wrong in it, and how it goes on."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, Query, Request
from starlette.responses import Response

from retoma.access import Person
from retoma.apps.quotes import api
from retoma.apps.quotes.api.how import LoteId
from retoma.apps.quotes.model import QuoteStatus
from retoma.apps.quotes.pages.looks import CONCERN, LOOKS, lote_given, quote_rows
from retoma.engine.ops.batches import Batch
from retoma.engine.rules.states import State
from retoma.web.house import AVisit
from retoma.web.many import do_to_batch
from retoma.web.orders import Order
from retoma.web.pages.asked import Blank, CursorOf
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Looker, Pages, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import Form, did, form_of, page_router, streamed
from retoma.web.pages.view import View
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.web.visit import Visit
from retoma.web.wire import Moved
from retoma.words import Said, say

routes = page_router()

LIST: Final = 25  # lotes, each with its counts
PAGE: Final = 50  # quotes
SILENCE: Final = 60  # seconds without an event after which a page says so
LOTES: Final = "/quotes/lotes"
NO_LOTES: Final = say(
    "No lotes yet. Import a table, or paste what is to be quoted; in a shell: `retoma quotes submit FILE.xlsx`."
)
NO_QUOTES: Final = say("No quote of this lote is like that now.")
ANYONE: Any = None  # the roles were asked for by the route

StatusOf = Annotated[QuoteStatus | None, Blank, Query()]


# — all of them —


@dataclass(frozen=True, slots=True)
class LotesScreen:
    """The newest lotes, or older ones."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    cursor: str | None = None

    @property
    def key(self) -> "LotesScreen":
        return self

    @property
    def concern(self) -> Concern:
        return Concern(kinds=CONCERN.kinds, pause=1.0)  # it asks each of them

    async def draw(self) -> Sequence[Region]:
        page = await api.lotes.list_lotes(ANYONE, self.pages.house, self.cursor, LIST)
        rows = {
            f"lote-{each.id}": self.pages.render(
                "quotes/lote_row.html", self.view, **lote_given(each, self.view)
            )
            for each in page.items
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_LOTES,
            way=(say("Import a table"), "/quotes/import"),
            following=page.next and LOTES + query_of({"cursor": page.next}),
            first=self.cursor and LOTES,
        )
        return [drawn("rows", table, rows), turns]


def lotes_screen(who: ALooker, cursor: CursorOf = None) -> LotesScreen:
    return LotesScreen(who.pages, who.view, cursor)


AList = Annotated[LotesScreen, Depends(lotes_screen)]


@routes.get("/quotes/lotes")
async def show_all(_: Viewer, who: ALooker, screen: AList) -> Response:
    return await who.page(screen, "quotes/lotes.html")


@routes.get("/live/quotes/lotes")
async def live_all(_: Viewer, who: ALooker, request: Request, screen: AList) -> Response:
    return await streamed(request, who, screen)


# — one —


@dataclass(frozen=True, slots=True)
class LoteScreen:
    """One lote, and a page of its quotes."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    lote: int
    status: QuoteStatus | None = None
    cursor: str | None = None

    @property
    def key(self) -> "LoteScreen":
        return self

    @property
    def concern(self) -> Concern:
        return Concern(batch=self.lote)

    async def draw(self) -> Sequence[Region]:
        house = self.pages.house
        told = await api.system.status_told(house, self.lote, self.view.language)
        batch = await house.retoma.batch(self.lote)
        given: dict[str, Any] = {
            **lote_given(told, self.view),
            "resumable": await _resumable(batch, told),
            "costs": await house.retoma.costs.of_batch(self.lote),
            "chosen": self.status,
            "link": self._link,
        }
        return [
            drawn(
                f"lote-{part}",
                self.pages.render(f"quotes/lote_{part}.html", self.view, **given),
            )
            for part in ("head", "waiting", "errors", "costs")
        ] + await self._quotes()

    async def _quotes(self) -> list[Region]:
        page = await api.quotes.list_quotes(
            ANYONE,
            self.pages.house,
            lote=self.lote,
            status=self.status,
            cursor=self.cursor,
            limit=PAGE,
        )
        rows = quote_rows(self.pages, self.view, page.items)
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_QUOTES,
            way=(say("Clear"), self._link(None)),
            following=page.next and self._link(self.status, page.next),
            first=self.cursor and self._link(self.status),
        )
        return [drawn("rows", table, rows), turns]

    def _link(self, status: QuoteStatus | None, cursor: str | None = None) -> str:
        return f"{LOTES}/{self.lote}{query_of({'status': status, 'cursor': cursor})}"


async def _resumable(batch: Batch, told: api.system.BatchStatus) -> bool:
    """Whether it was interrupted: paused, waiting for a person, or left by its runners."""
    if told.finished:
        return False
    counts = await batch.counts()
    return told.paused or bool(told.stuck_count or counts.get(State.PARKED))


def lote_screen(
    lote: LoteId, who: ALooker, status: StatusOf = None, cursor: CursorOf = None
) -> LoteScreen:
    return LoteScreen(who.pages, who.view, lote, status, cursor)


AScreen = Annotated[LoteScreen, Depends(lote_screen)]


@routes.get("/quotes/lotes/{lote}")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    batch = await api.lotes.lote_of(who.house, screen.lote)
    return await who.page(
        screen,
        "quotes/lote.html",
        name=batch.name,
        number=screen.lote,
        chosen=screen.status,
        looks=LOOKS,
        silence=SILENCE,
    )


@routes.get("/live/quotes/lotes/{lote}")
async def live(_: Viewer, who: ALooker, request: Request, screen: AScreen) -> Response:
    return await streamed(request, who, screen)


@routes.post("/quotes/lotes/{lote}/{verb}")
async def steer(
    lote: LoteId, verb: str, actor: Operator, who: ALooker, visit: AVisit, request: Request
) -> Response:
    """ "Pausar", "Retomar lote", "Cancelar", "Recuperar"."""
    form = await form_of(request)
    said = await _steered(who, lote, verb, form, actor, visit)
    return did(who, who.view.tell(said), f"{LOTES}/{lote}")


async def _steered(
    who: Looker, lote: int, verb: str, form: Form, actor: Person, visit: Visit
) -> Said:
    batch = await api.lotes.lote_of(who.house, lote)
    match verb:
        case "pause":
            await batch.pause(actor=actor.name)
            return say("lote {lote} is paused: what runs ends", lote=lote)
        case "resume":
            await api.system.resume_batch(lote, actor, who.house, visit, Response())
            return say("lote {lote} goes on", lote=lote)
        case "cancel":
            return _outcome(
                await api.lotes.cancel_lote(lote, actor, who.house, visit, Response())
            )
        case "retry":
            codes = form.all("code") or None
            order = Order(verb="retry", actor=actor.name, batch=lote, codes=codes)
            return _outcome(await do_to_batch(who.house, batch, order, visit, Response()))
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))


def _outcome(moved: Moved) -> Said:
    if moved.job is not None:
        return say("they are many: job {job} does it", job=moved.job)
    return say("{moved} moved", moved=moved.moved)
