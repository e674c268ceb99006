"""What the pages of the ads orchestrator have in common: what moves them, how a status looks, what forms say."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from fastapi.exceptions import RequestValidationError
from markupsafe import Markup
from pydantic import BaseModel, ValidationError

from retoma.apps.ads.api import WorkerShown
from retoma.apps.ads.model import Checkpoint, Status, WorkerStatus
from retoma.apps.ads.store import EXTRACTION, SESSION, STORAGE
from retoma.db import Transaction
from retoma.web.pages.kit import Pages
from retoma.web.pages.live import Concern
from retoma.web.pages.view import View

T = TypeVar("T")
B = TypeVar("B", bound=BaseModel)

# Whatever a session or a mission does is an event of one of these; what people do is a line of the log.
CONCERN: Final = Concern(kinds=(SESSION, EXTRACTION, STORAGE), pause=0.5)

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
        )
        for each in workers
    }


def filled(shape: type[B], told: Mapping[str, Any]) -> B:
    """What a form says, held against what the API takes; a field left empty says nothing."""
    given = {name: value for name, value in told.items() if value not in (None, "", [])}
    try:
        return shape.model_validate(given)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from None
