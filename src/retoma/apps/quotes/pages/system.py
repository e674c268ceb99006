"""What the document watches: quotes that are stuck, and the stats with their funnel of checkpoints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from starlette.responses import Response

from retoma.apps.quotes.model import ProcessingCheckpoint, meanings_in, percentage
from retoma.apps.quotes.pages.presenters import CONCERN, present_lote
from retoma.apps.quotes.service import lotes, recovery
from retoma.engine.rules.errors import BadInput
from retoma.web.pages.asked import BatchOf
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, form_of, page_router, plain, serve_screen
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

STUCK: Final = "/quotes/stuck"
MANY: Final = 10  # stuck quotes from which on the document warns
SLOW: Final = 120.0  # seconds of one quote from which on it does
WIDTH: Final = 1000.0


# — what is stuck —


@dataclass(frozen=True, slots=True)
class StuckScreen(Screen):
    """Quotes that do not move, the longest first."""

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        retoma, language = self.pages.house.retoma, self.view.language
        stuck = await recovery.list_stuck(retoma)
        given: dict[str, Any] = {
            "stuck": stuck,
            "waiting": await recovery.list_waiting(retoma, language),
            "lote": None,
            "meanings": meanings_in(language),
            "left": sum(each.lease_expired for each in stuck),
            "most": recovery.MOST_STUCK,
        }
        return [
            drawn(name, self.pages.render(f"quotes/{name}.html", self.view, **given))
            for name in ("stuck_all", "waiting", "stuck_list")
        ]


serve_screen(routes, "/quotes/stuck", plain(StuckScreen), "quotes/stuck.html")


@routes.post("/quotes/stuck/all")
async def recover_all(actor: Operator, who: ALooker) -> Response:
    """ "Recuperar todas"."""
    done = await recovery.recover_stuck(who.house.retoma, actor=actor.name)
    said = say("recovered: {n}; still stuck: {left}", n=done.recovered, left=done.stuck_count)
    return did(who, who.view.tell(said), STUCK)


@routes.post("/quotes/stuck/one")
async def recover_one(actor: Operator, who: ALooker, request: Request) -> Response:
    """ "Recuperar", of a row."""
    given = (await form_of(request)).one("quote") or ""
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise BadInput(say("no quote is named; nothing was changed"))
    await recovery.recover_quote(who.house.retoma, int(given), actor=actor.name)
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
class StatsScreen(Screen):
    """All that is processed now, or that of a lote."""

    lote: int | None = None

    @property
    def concern(self) -> Concern:
        return Concern(kinds=CONCERN.kinds, batch=self.lote, pause=1.0)

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        stats = await recovery.get_stats(retoma)
        given: dict[str, Any] = {"stats": stats, "many": MANY, "slow": SLOW, "lote": None}
        by = stats.by_checkpoint
        if self.lote is not None:
            lote = await lotes.get_lote_status(retoma, self.lote)
            given |= present_lote(lote, self.view)
            by = lote.by_checkpoint
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


serve_screen(routes, "/quotes/stats", stats_screen)
