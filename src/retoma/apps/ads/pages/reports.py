"""The audit reports (§10.3) as a page: which missions failed, how workers and proxies fare, where a
mission's time went. Charts are drawn here: numbers in, rectangles out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final

from fastapi import Depends, Query
from pydantic import Field
from starlette.responses import Response

from retoma.apps.ads.model import Checkpoint, Event
from retoma.apps.ads.pages.presenters import CONCERN, MISSION_LOOKS
from retoma.apps.ads.pages.words import details, event_name
from retoma.apps.ads.service import missions, reports
from retoma.apps.ads.store.reports import Failure, Happened
from retoma.web.pages.asked import Blank
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import page_router, serve_screen
from retoma.web.sign_in import Viewer

routes = page_router()

BACK: Final = "/ads/reports"
LINES: Final = 100  # failures that are shown; the table has all of them
WIDE: Final = 1000.0  # of a chart, in its own units
BARS: Final = 24  # of the chart of failures
PAUSE: Final = 2.0  # seconds between two drawings: it adds up what happened in days
SPANS: Final = (24, 72, 168, 720)  # hours that are offered
ENDS: Final = (Event.MISSION_COMPLETED, Event.MISSION_FAILED, Event.MISSION_CANCELED)
# With which event a mission comes to which checkpoint.
REACHED: Final = {
    Event.MISSION_QUEUED: Checkpoint.ATRIBUIDO,
    Event.MISSION_ASSIGNED: Checkpoint.EXTRACAO,
    Event.SCRAPE_COMPLETED: Checkpoint.ARMAZENAMENTO,
}
LOOKS: Final = {
    Checkpoint.ATRIBUIDO: "skipped",
    Checkpoint.EXTRACAO: "running",
    Checkpoint.ARMAZENAMENTO: "parked",
}

Hours = Annotated[int, Field(ge=1, le=2160)]
HoursOf = Annotated[Hours | None, Blank, Query()]
Code = Annotated[str, Field(max_length=20)]
CodeOf = Annotated[Code | None, Blank, Query()]
Id = Annotated[str, Field(max_length=100)]
MissionOf = Annotated[Id | None, Blank, Query()]


# — charts —


@dataclass(frozen=True, slots=True)
class Bar:
    """One piece of a chart, in its units; what it stands for."""

    x: float
    width: float
    height: float
    n: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Stretch:
    """How long a mission stood at a checkpoint, and where that lies in the chart."""

    checkpoint: str
    look: str
    lasted: timedelta
    x: float
    width: float


def bars(failures: Sequence[Failure], now: datetime, hours: int) -> list[Bar]:
    """So many failures in each part of the time looked at, the oldest at the left."""
    part = timedelta(hours=hours) / BARS
    counts = [0] * BARS
    for each in failures:
        back = int((now - each.failed_at) / part)
        if 0 <= back < BARS:
            counts[BARS - 1 - back] += 1
    most, wide = max([*counts, 1]), WIDE / BARS
    return [
        Bar(at * wide + 3, wide - 6, 100.0 * n / most, n, now - part * (BARS - at))
        for at, n in enumerate(counts)
    ]


def stretches(told: Sequence[Happened]) -> list[Stretch]:
    """Where the time of a mission's last life went."""
    begins = [at for at, each in enumerate(told) if each.event == Event.MISSION_QUEUED]
    life = told[begins[-1] :] if begins else []
    if not life:
        return []
    whole = max((life[-1].timestamp - life[0].timestamp).total_seconds(), 0.001)
    made = []
    for where, begin, end in _stays(life):
        x = (begin - life[0].timestamp).total_seconds() / whole * WIDE
        width = max((end - begin).total_seconds() / whole * WIDE, 3.0)
        made.append(Stretch(str(where), LOOKS[where], end - begin, x, width))
    return made


def _stays(life: Sequence[Happened]) -> list[tuple[Checkpoint, datetime, datetime]]:
    made: list[tuple[Checkpoint, datetime, datetime]] = []
    where, since = Checkpoint.ATRIBUIDO, life[0].timestamp
    for each in life[1:]:
        event = Event(each.event)
        if event in REACHED or event in ENDS:
            made.append((where, since, each.timestamp))
            where, since = REACHED.get(event, where), each.timestamp
        if event in ENDS:
            return made
    return [*made, (where, since, life[-1].timestamp)]


# — the page —


@dataclass(frozen=True, slots=True)
class ReportsScreen(Screen):
    """All four, over the time that was asked for."""

    hours: int | None = None
    code: str | None = None
    mission: str | None = None

    @property
    def concern(self) -> Concern:
        return Concern(kinds=CONCERN.kinds, pause=PAUSE)

    @property
    def days(self) -> int:
        """Of workers and proxies: a week, as the document has it, or what was asked for."""
        return 7 if self.hours is None else max(round(self.hours / 24), 1)

    async def draw(self) -> Sequence[Region]:
        return [
            await self._failures(),
            await self._workers(),
            await self._proxies(),
            await self._timeline(),
        ]

    async def _failures(self) -> Region:
        hours = self.hours or 24
        retoma = self.pages.house.retoma
        found = await reports.list_failures(retoma, hours, self.code)
        now = await reports.get_database_time(retoma)
        html = self.pages.render(
            "ads/report_failures.html",
            self.view,
            failures=found[:LINES],
            total=len(found),
            bars=bars(found, now, hours),
            looks=MISSION_LOOKS,
            hours=hours,
            table="/api/ads/reports/failures.csv"
            + query_of({"hours": hours, "code": self.code}),
        )
        return drawn("report-failures", html)

    async def _workers(self) -> Region:
        found = await reports.list_worker_results(self.pages.house.retoma, self.days)
        most = max([each.completed_count + each.failed_count for each in found], default=1)
        html = self.pages.render(
            "ads/report_workers.html",
            self.view,
            workers=found,
            unit=WIDE / max(most, 1),
            days=self.days,
            table="/api/ads/reports/workers.csv" + query_of({"days": self.days}),
        )
        return drawn("report-workers", html)

    async def _proxies(self) -> Region:
        found = await reports.list_proxy_failures(self.pages.house.retoma, self.days)
        bad = [each for each in found if each.bad]
        most = max([each.session_failures + each.rotations for each in bad], default=1)
        html = self.pages.render(
            "ads/report_proxies.html",
            self.view,
            proxies=bad[:LINES],
            good=len(found) - len(bad),
            unit=WIDE / max(most, 1),
            days=self.days,
            table="/api/ads/reports/proxies.csv" + query_of({"days": self.days}),
        )
        return drawn("report-proxies", html)

    async def _timeline(self) -> Region:
        told = []
        if self.mission:
            told = await missions.get_timeline(self.pages.house.retoma, self.mission)
        html = self.pages.render(
            "ads/report_timeline.html",
            self.view,
            mission=self.mission,
            told=told,
            stretches=stretches(told),
            event_name=event_name,
            details=details,
        )
        return drawn("report-timeline", html)


def reports_screen(
    who: ALooker, hours: HoursOf = None, code: CodeOf = None, mission: MissionOf = None
) -> ReportsScreen:
    return ReportsScreen(who.pages, who.view, hours, code, mission)


AReports = Annotated[ReportsScreen, Depends(reports_screen)]


@routes.get("/ads/reports")
async def show(_: Viewer, who: ALooker, screen: AReports) -> Response:
    return await who.page(screen, "ads/reports.html", asked=screen, spans=SPANS)


serve_screen(routes, "/ads/reports", reports_screen)
