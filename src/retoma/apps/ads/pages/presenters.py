"""Turn rows into what the pages of the ads orchestrator show, and name the events that draw them again."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from markupsafe import Markup

from retoma.apps.ads.model import Checkpoint, Status, WorkerStatus
from retoma.apps.ads.pages.words import details, event_name
from retoma.apps.ads.store import (
    EXTRACTION,
    HEALTH,
    SESSION,
    STORAGE,
    MissionRecord,
    ProxyRecord,
    RunningMission,
    WorkerRecord,
)
from retoma.apps.ads.store.operate import OFF_BY
from retoma.apps.ads.store.reports import Happened
from retoma.web.pages.kit import Pages
from retoma.web.pages.live import Concern
from retoma.web.pages.view import View
from retoma.words import Said, say

FAILED: Final = ("mission_failed", "session_failed", "scrape_failed", "writer_failed")
# Whatever a session or a mission does is an event of one of these; what people do is a line of the log.
CONCERN: Final = Concern(kinds=(SESSION, EXTRACTION, STORAGE, HEALTH), pause=0.5)

# A status is shown by its own name; this is the colour of it.
MISSION_LOOKS: Final[Mapping[str, str]] = {
    Status.RUNNING: "running",
    Status.COMPLETED: "done",
    Status.FAILED: "dead",
    Status.CANCELED: "canceled",
}
WORKER_LOOKS: Final[Mapping[str, str]] = {
    WorkerStatus.INITIALIZING: "paused",
    WorkerStatus.READY: "done",
    WorkerStatus.SCRAPING: "running",
    WorkerStatus.ERROR: "dead",
}


async def read_setting(pages: Pages, name: str) -> Any:
    """The live setting of this application with that name."""
    return (await pages.house.retoma.knobs.get(f"ads.{name}")).value


async def concern_of(pages: Pages) -> Concern:
    """What draws a page anew: its events, and `polling_ui` where there are none (§8.2)."""
    return replace(CONCERN, silence=await read_setting(pages, "polling_ui"))


def path_of(checkpoint: str | None, status: str) -> list[tuple[str, str]]:
    """The four checkpoints in their order, each with its look: passed, reached, or still to come."""
    names = [str(each) for each in Checkpoint]
    reached = names.index(checkpoint) if checkpoint else -1
    at = {Status.RUNNING: "begun", Status.QUEUED: "begun", Status.COMPLETED: "saved"}
    here = at.get(Status(status), "failed")
    looks = ("saved", here, "ahead")
    return [(name, looks[(n >= reached) + (n > reached)]) for n, name in enumerate(names)]


def worker_rows(
    pages: Pages,
    view: View,
    workers: Sequence[WorkerRecord],
    proxies: Mapping[str, str],
    limit: int,
    *,
    operated: bool = False,
) -> dict[str, Markup]:
    """Of each worker its row, whichever page it stands on."""
    return {
        f"worker-{each.id}": pages.render(
            "ads/worker_row.html",
            view,
            worker=each,
            look=WORKER_LOOKS.get(each.status, ""),
            proxy=proxies.get(each.current_proxy_id or "", each.current_proxy_id),
            limit=limit,
            operated=operated,
        )
        for each in workers
    }


def mission_rows(
    pages: Pages, view: View, missions: Sequence[MissionRecord]
) -> dict[str, Markup]:
    return {
        f"mission-{each.id}": pages.render(
            "ads/mission_row.html",
            view,
            mission=each,
            look=MISSION_LOOKS.get(each.status, ""),
        )
        for each in missions
    }


def running_rows(
    pages: Pages, view: View, missions: Sequence[RunningMission]
) -> dict[str, Markup]:
    return {
        f"underway-{each.id}": pages.render(
            "ads/underway_row.html",
            view,
            mission=each,
            path=path_of(each.checkpoint, Status.RUNNING),
        )
        for each in missions
    }


def explain_inactive(proxy: ProxyRecord) -> Said | None:
    """Say why a proxy is given to no session; its pool says it for programs."""
    reason = proxy.reason or ""
    if proxy.active:
        return None
    if reason.startswith(OFF_BY):
        return say("deactivated by {name}", name=reason.removeprefix(OFF_BY))
    return say("failures in a row: {n}", n=proxy.fail_count) if proxy.fail_count else None


@dataclass(frozen=True, slots=True)
class TimelineLine:
    """One event of a mission in one line; its nested details apart, as JSON."""

    at: datetime
    event: str
    word: str
    said: str
    more: str
    bad: bool


def timeline_line(view: View, happened: Happened) -> TimelineLine:
    found = happened.details or {}
    rest = {name: value for name, value in found.items() if isinstance(value, dict | list)}
    return TimelineLine(
        at=happened.timestamp,
        event=happened.event,
        word=event_name(view, happened.event),
        said=details(view, found),
        more=format_json(rest) if rest else "",
        bad=happened.event in FAILED,
    )


def format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
