"""The board: everything at once, as far as it fits a screen, and the way to each thing on it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

from fastapi import Depends, Query
from starlette.responses import JSONResponse, Response

from retoma.engine.rules.states import State
from retoma.services.alerts import Alert, Rule, Severity, sentence
from retoma.services.health import read_clock
from retoma.services.jobs import Durations, Minute
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.rooms import Room, rooms_of
from retoma.web.pages.route import page_router, serve_screen
from retoma.web.sign_in import Viewer
from retoma.words import tell

routes = page_router()

PAUSE: Final = 1.5  # seconds between two drawings: it asks many things
STUCK: Final = 10  # rows
ALERTS: Final = 20
LOOKED_AT: Final = 200  # alerts, of which those are shown
NEWS: Final = 3  # alerts that ask nothing of anybody, before the others are folded away
LIMITS: Final = 50
GONE: Final = ("gone", "lost")
DRAWN: Final = (
    *("rooms", "tiles", "alerts", "stuck", "funnel", "durations", "runners", "gates"),
    "schedules",
)
CHARTED: Final = (State.WAITING, State.DONE, State.DEAD)
SPANS: Final = {"1h": (3_600, 60), "1d": (86_400, 600)}  # seconds in all, and of one point

SpanOf = Annotated[str, Query(pattern="^(1h|1d)$")]


@dataclass(frozen=True, slots=True)
class BoardScreen(Screen):
    """The house as it stands."""

    last: str = "1h"

    @property
    def concern(self) -> Concern:
        return Concern(pause=PAUSE)

    async def draw(self) -> Sequence[Region]:
        given = {**await self._work(), **await self._house(), "rooms": await self._rooms()}
        return [
            drawn(f"board-{name}", self.pages.render(f"board_{name}.html", self.view, **given))
            for name in DRAWN
        ]

    async def _work(self) -> dict[str, Any]:
        retoma = self.pages.house.retoma
        stuck = await retoma.insights.stuck(limit=STUCK + 1)
        return {
            "counts": await retoma.insights.counts(),
            "refused": await retoma.runners.refused_writes(),
            "done_today": await self._done_today(),
            "stuck": stuck[:STUCK],
            "stuck_more": len(stuck) > STUCK,
            "funnel": await retoma.insights.funnel(),
            "durations": bars(await retoma.insights.durations(last=self.last)),
            "last": self.last,
        }

    async def _rooms(self) -> list[Room]:
        house = self.pages.house
        now = await read_clock(house.retoma)
        moved = await house.retoma.insights.throughput(last="1h")
        counts = await house.retoma.insights.counts_by_kind()
        return rooms_of(house.applications, counts, moved, now)

    async def _house(self) -> dict[str, Any]:
        retoma = self.pages.house.retoma
        limits = await retoma.limits.list(limit=LIMITS)
        # Many batches may have finished since something broke: that stands first all the same.
        raised = await retoma.alerts.list(limit=LOOKED_AT)
        alerts = sorted(raised, key=lambda each: each.severity is Severity.INFO)[:ALERTS]
        return {
            "alerts": [
                (each, tell(sentence(each), self.view.language), leads(each)) for each in alerts
            ],
            "folded": max(sum(each.severity is Severity.INFO for each in alerts) - NEWS, 0),
            "runners": [each for each in await retoma.runners.list() if each.state not in GONE],
            "breakers": await retoma.breakers.list(),
            "limits": [each for each in limits if each.used],
            "schedules": sorted(await retoma.schedules.list(), key=lambda each: each.next_at),
        }

    async def _done_today(self) -> int:
        """Since midnight where the house is."""
        retoma = self.pages.house.retoma
        now = await read_clock(retoma)
        local = now.astimezone(ZoneInfo(retoma.timezone))
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0)
        passed = max((local - midnight).total_seconds(), 60.0)
        moved = await retoma.insights.throughput(last=passed)
        return sum(each.jobs for each in moved if each.state is State.DONE)


def leads(alert: Alert) -> str:
    """The address at which somebody sees more of it."""
    match alert.rule:
        case Rule.STUCK | Rule.STUCK_QUOTES:
            return "#board-stuck"
        case Rule.SLOW:
            return "/jobs" + query_of({"kind": alert.subject})
        case Rule.NO_RUNNER | Rule.TROUBLE:
            return "/runners"
        case Rule.DEAD:
            return "/dead" + query_of({"kind": alert.subject})
        case Rule.BATCH:
            return f"/batches/{alert.subject}"
        case Rule.BREAKER:
            return "/gates"
        case Rule.BUDGET:
            return "/jobs" + query_of({"state": State.WAITING})
        case Rule.APPLICATION:
            return "/" + alert.subject.partition(".")[0]


def bars(found: Sequence[Durations]) -> list[tuple[Durations, float, float]]:
    """Each kind with its percentiles as parts of the longest, from 0 to 1000."""
    longest = max((each.p95 for each in found), default=0.0) or 1.0
    return [(each, each.p50 * 1000 / longest, each.p95 * 1000 / longest) for each in found]


def board_screen(who: ALooker, last: SpanOf = "1h") -> BoardScreen:
    return BoardScreen(who.pages, who.view, last)


AScreen = Annotated[BoardScreen, Depends(board_screen)]


@routes.get("/")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    return await who.page(screen, "board.html", last=screen.last)


serve_screen(routes, "/", board_screen)


@routes.get("/pace")
async def pace(_: Viewer, who: ALooker, last: SpanOf = "1h") -> Response:
    """What the chart of the board shows: points in time, and how many jobs came to which state."""
    span, step = SPANS[last]
    retoma = who.house.retoma
    moved = await retoma.insights.throughput(last=span)
    now = await read_clock(retoma)
    return JSONResponse(charted(moved, now, span, step))


def charted(moved: Iterable[Minute], now: datetime, span: int, step: int) -> dict[str, Any]:
    """Every point of the span, also those in which nothing happened; rates are by the minute."""
    came: dict[State, Counter[int]] = {state: Counter() for state in CHARTED}
    for each in moved:
        if each.state in came:
            came[each.state][int(each.at.timestamp()) // step * step] += each.jobs
    end = int(now.timestamp()) // step * step
    at = list(range(end - span + step, end + step, step))
    passed = max(now.timestamp() - end, step / 6)  # of the last point: it is not over
    lasted = [*[step] * (len(at) - 1), passed]
    return {
        "at": at,
        **{
            str(state): [
                came[state][each] * 60 / lasts for each, lasts in zip(at, lasted, strict=True)
            ]
            for state in CHARTED
        },
    }
