"""What the document watches: quotes that are stuck, and the stats with their funnel of checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.responses import Response

from retoma.apps.quotes import api
from retoma.apps.quotes.api.how import percentage
from retoma.apps.quotes.model import ProcessingCheckpoint, meanings_in
from retoma.apps.quotes.pages.looks import CONCERN, lote_given
from retoma.engine.errors import BadInput
from retoma.web.pages.asked import BatchOf
from retoma.web.pages.kit import ALooker, Pages, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, streamed
from retoma.web.pages.view import View
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

STUCK: Final = "/quotes/stuck"
MANY: Final = 10  # stuck quotes from which on the document warns
SLOW: Final = 120.0  # seconds of one quote from which on it does
WIDTH: Final = 1000.0


# — what is stuck —


@dataclass(frozen=True, slots=True)
class StuckScreen:
    """Quotes that do not move, the longest first."""

    pages: Pages = field(compare=False, repr=False)
    view: View

    @property
    def key(self) -> "StuckScreen":
        return self

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        house, language = self.pages.house, self.view.language
        stuck = await api.system.stuck_told(house)
        given: dict[str, Any] = {
            "stuck": stuck,
            "waiting": await api.how.waiting_told(house, language),
            "lote": None,
            "meanings": meanings_in(language),
            "left": sum(each.lease_expired for each in stuck),
            "most": api.system.MOST,
        }
        return [
            drawn(name, self.pages.render(f"quotes/{name}.html", self.view, **given))
            for name in ("stuck_all", "waiting", "stuck_list")
        ]


def stuck_screen(who: ALooker) -> StuckScreen:
    return StuckScreen(who.pages, who.view)


AStuck = Annotated[StuckScreen, Depends(stuck_screen)]


@routes.get("/quotes/stuck")
async def show_stuck(_: Viewer, who: ALooker, screen: AStuck) -> Response:
    return await who.page(screen, "quotes/stuck.html")


@routes.get("/live/quotes/stuck")
async def live_stuck(_: Viewer, who: ALooker, request: Request, screen: AStuck) -> Response:
    return await streamed(request, who, screen)


@routes.post("/quotes/stuck/all")
async def recover_all(actor: Operator, who: ALooker) -> Response:
    """ "Recuperar todas"."""
    done = await api.system.recover_stuck(actor, who.house)
    said = say("recovered: {n}; still stuck: {left}", n=done.recovered, left=done.stuck_count)
    return did(who, who.view.tell(said), STUCK)


@routes.post("/quotes/stuck/one")
async def recover_one(actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Recuperar", of a row."""
    given = (await form_of(request)).one("quote") or ""
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise BadInput(say("no quote is named; nothing was changed"))
    await api.system.recover_quote(int(given), actor, who.house)
    said = say("quote {quote} goes on where it stopped", quote=given)
    return did(who, who.view.tell(said), STUCK)


# — the stats —


@dataclass(frozen=True, slots=True)
class Bar:
    """How many stand at a checkpoint, beside the others."""

    name: ProcessingCheckpoint
    percent: int
    n: int
    width: float


@dataclass(frozen=True, slots=True)
class StatsScreen:
    """All that is processed now, or that of a lote."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    lote: int | None = None

    @property
    def key(self) -> "StatsScreen":
        return self

    @property
    def concern(self) -> Concern:
        return Concern(kinds=CONCERN.kinds, batch=self.lote, pause=1.0)

    async def draw(self) -> Sequence[Region]:
        house = self.pages.house
        stats = await api.system.stats_told(house)
        given: dict[str, Any] = {"stats": stats, "many": MANY, "slow": SLOW, "lote": None}
        by = stats.by_checkpoint
        if self.lote is not None:
            told = await api.system.status_told(house, self.lote)
            given |= lote_given(told, self.view)
            by = told.by_checkpoint
        given["bars"] = bars_of(by)
        return [
            drawn(
                f"stats-{name}",
                self.pages.render(f"quotes/stats_{name}.html", self.view, **given),
            )
            for name in ("tiles", "funnel")
        ]


def bars_of(by: Mapping[ProcessingCheckpoint, int]) -> list[Bar]:
    """Every checkpoint in its order, with nobody at it too."""
    most = max(by.values(), default=0) or 1
    standing = [
        each for each in ProcessingCheckpoint if each is not ProcessingCheckpoint.COMPLETED
    ]
    return [
        Bar(each, percentage(each), by.get(each, 0), by.get(each, 0) * WIDTH / most)
        for each in standing
    ]


def stats_screen(who: ALooker, lote: BatchOf = None) -> StatsScreen:
    return StatsScreen(who.pages, who.view, lote)


AStats = Annotated[StatsScreen, Depends(stats_screen)]


@routes.get("/quotes/stats")
async def show_stats(_: Viewer, who: ALooker, screen: AStats) -> Response:
    return await who.page(screen, "quotes/stats.html", chosen=screen.lote)


@routes.get("/live/quotes/stats")
async def live_stats(_: Viewer, who: ALooker, request: Request, screen: AStats) -> Response:
    return await streamed(request, who, screen)
