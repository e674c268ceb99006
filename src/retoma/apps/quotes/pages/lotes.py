"""Lotes and one of them: how far it is, what it costs, what went wrong in it, and how it goes on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Query, Request
from starlette.responses import Response

from retoma.apps.quotes import store
from retoma.apps.quotes.model import QuoteStatus
from retoma.apps.quotes.pages.presenters import (
    CONCERN,
    LOOKS,
    present_lote,
    render_quote_rows,
)
from retoma.apps.quotes.service import lotes, quotes
from retoma.apps.quotes.service.quotes import QuoteLine
from retoma.library import Retoma
from retoma.services.bulk import BatchAction
from retoma.web.cursor import Cursor
from retoma.web.house import AVisit
from retoma.web.pages.asked import Blank, CursorOf
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Looker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import Form, did, form_of, page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.web.visit import Visit
from retoma.web.wire import LARGEST
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

LoteId = Annotated[int, Path(ge=1, le=LARGEST)]
StatusOf = Annotated[QuoteStatus | None, Blank, Query()]


# — all of them —


@dataclass(frozen=True, slots=True)
class LotesScreen(Screen):
    """The newest lotes, or older ones."""

    cursor: str | None = None

    @property
    def concern(self) -> Concern:
        return Concern(kinds=CONCERN.kinds, pause=1.0)  # it asks each of them

    async def draw(self) -> Sequence[Region]:
        stamp = Cursor("lotes", None)
        [before] = stamp.read(self.cursor, int) or [None]
        found, last = await lotes.list_lotes(self.pages.house.retoma, limit=LIST, before=before)
        following = stamp.write(last)
        rows = {
            f"lote-{each.id}": self.pages.render(
                "quotes/lote_row.html", self.view, **present_lote(each, self.view)
            )
            for each in found
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_LOTES,
            way=(say("Import a table"), "/quotes/import"),
            following=following and LOTES + query_of({"cursor": following}),
            first=self.cursor and LOTES,
        )
        return [drawn("rows", table, rows), turns]


def lotes_screen(who: ALooker, cursor: CursorOf = None) -> LotesScreen:
    return LotesScreen(who.pages, who.view, cursor)


serve_screen(routes, "/quotes/lotes", lotes_screen, "quotes/lotes.html")


# — one —


@dataclass(frozen=True, slots=True)
class LoteScreen(Screen):
    """One lote, and a page of its quotes."""

    lote: int
    status: QuoteStatus | None = None
    cursor: str | None = None

    @property
    def concern(self) -> Concern:
        return Concern(batch=self.lote)

    async def draw(self) -> Sequence[Region]:
        lote = await lotes.get_lote_status(
            self.pages.house.retoma, self.lote, self.view.language
        )
        given: dict[str, Any] = {
            **present_lote(lote, self.view),
            "resumable": lote.resumable,
            "costs": lote.cost,
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
        found, following = await list_page(
            self.pages.house.retoma, self.cursor, lote=self.lote, status=self.status
        )
        rows = render_quote_rows(self.pages, self.view, found)
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_QUOTES,
            way=(say("Clear"), self._link(None)),
            following=following and self._link(self.status, following),
            first=self.cursor and self._link(self.status),
        )
        return [drawn("rows", table, rows), turns]

    def _link(self, status: QuoteStatus | None, cursor: str | None = None) -> str:
        return f"{LOTES}/{self.lote}{query_of({'status': status, 'cursor': cursor})}"


async def list_page(
    retoma: Retoma, cursor: str | None, *, lote: int | None, status: QuoteStatus | None
) -> tuple[list[QuoteLine], str | None]:
    """List one page of quotes. Return the cursor of the next page too, where there is one."""
    stamp = Cursor("quotes", [lote, status, None])
    place = stamp.read(cursor, int, int)
    found, end = await quotes.list_quotes(
        retoma,
        limit=PAGE,
        lote=lote,
        status=status,
        before=store.Place(*place) if place else None,
    )
    return found, end and stamp.write(*end)


def lote_screen(
    lote: LoteId, who: ALooker, status: StatusOf = None, cursor: CursorOf = None
) -> LoteScreen:
    return LoteScreen(who.pages, who.view, lote, status, cursor)


AScreen = Annotated[LoteScreen, Depends(lote_screen)]


@routes.get("/quotes/lotes/{lote}")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    batch = await lotes.get_batch(who.house.retoma, screen.lote)
    return await who.page(
        screen,
        "quotes/lote.html",
        name=batch.name,
        number=screen.lote,
        chosen=screen.status,
        looks=LOOKS,
        silence=SILENCE,
    )


serve_screen(routes, "/quotes/lotes/{lote}", lote_screen)


@routes.post("/quotes/lotes/{lote}/{verb}")
async def steer(
    lote: LoteId, verb: str, actor: Operator, who: ALooker, visit: AVisit, request: Request
) -> Response:
    """ "Pausar", "Retomar lote", "Cancelar", "Recuperar"."""
    form = await form_of(request)
    message = await _steer(who, lote, verb, form, actor.name, visit)
    return did(who, who.view.tell(message), f"{LOTES}/{lote}")


async def _steer(
    who: Looker, lote: int, verb: str, form: Form, actor: str, context: Visit
) -> Said:
    retoma = who.house.retoma
    match verb:
        case "pause":
            await lotes.pause_lote(retoma, lote, actor=actor)
            return say("lote {lote} is paused: what runs ends", lote=lote)
        case "resume":
            await lotes.resume_lote(retoma, lote, actor=actor, context=context)
            return say("lote {lote} goes on", lote=lote)
        case "cancel":
            return _outcome(await lotes.cancel_lote(retoma, lote, actor=actor, context=context))
        case "retry":
            codes = form.all("code") or None
            return _outcome(
                await lotes.retry_lote(retoma, lote, codes, actor=actor, context=context)
            )
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))


def _outcome(done: BatchAction) -> Said:
    if done.job is not None:
        return say("they are many: job {job} does it", job=done.job)
    return say("{moved} moved", moved=done.moved)
