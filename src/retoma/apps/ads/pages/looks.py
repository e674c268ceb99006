"""What the pages of the ads orchestrator have in common: what moves them, how a status looks, what forms say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from markupsafe import Markup

from retoma.apps.ads.api.things import WorkerShown
from retoma.apps.ads.model import Checkpoint, Status, WorkerStatus
from retoma.apps.ads.store import EXTRACTION, HEALTH, SESSION, STORAGE
from retoma.db import Transaction
from retoma.web.pages.kit import Pages
from retoma.web.pages.live import Concern
from retoma.web.pages.view import View

T = TypeVar("T")
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


async def read(pages: Pages, fn: Callable[[Transaction], T]) -> T:
    return await (await pages.house.retoma.database()).read(fn)


async def knob(pages: Pages, name: str) -> Any:
    return (await pages.house.retoma.knobs.get(f"ads.{name}")).value


async def concern_of(pages: Pages) -> Concern:
    """What draws a page anew: its events, and `polling_ui` where there are none (§8.2)."""
    return replace(CONCERN, silence=await knob(pages, "polling_ui"))


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
    workers: Sequence[WorkerShown],
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
