"""What the pages of embeddings have in common: what moves them, how a status looks, where things stand."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from retoma.apps.embeddings.model import KIND, JobStatus
from retoma.apps.embeddings.store.collections import Progress
from retoma.db import Transaction
from retoma.toolkit.tools import Tools
from retoma.web import House
from retoma.web.pages.bars import parts_of
from retoma.web.pages.kit import Looker
from retoma.web.pages.live import Concern

T = TypeVar("T")
S = JobStatus

PAGE: Final = "/embeddings"
DEAD: Final = f"{PAGE}/falhas"
SEARCH: Final = f"{PAGE}/busca"
NEW: Final = f"{PAGE}/nova"
CONCERN: Final = Concern(kinds=(KIND,), pause=1.0)

# A status is shown by its own name; this is the colour of it.
LOOKS: Final[Mapping[JobStatus, str]] = {
    S.PENDING: "waiting",
    S.PROCESSING: "running",
    S.COMPLETED: "done",
    S.FAILED: "dead",
}
# Of a bar, from left to right: what has ended, then what is at it.
PARTS: Final = (S.COMPLETED, S.FAILED, S.PROCESSING)


def counts_of(progress: Progress) -> dict[JobStatus, int]:
    """How many documents are how, in the document's words."""
    return {
        S.PENDING: progress.waiting + progress.parked,
        S.PROCESSING: progress.processing,
        S.COMPLETED: progress.embedded,
        S.FAILED: progress.failed,
    }


def progress_given(progress: Progress) -> dict[str, Any]:
    """What a template says of how far a collection is."""
    counts = counts_of(progress)
    whole = max(sum(counts.values()), 1)
    return {
        "progress": progress,
        "counts": counts,
        "looks": LOOKS,
        "bar": parts_of(((LOOKS[each], counts[each]) for each in PARTS), whole),
        "share": counts[S.COMPLETED] / whole,
    }


def address(collection: str) -> str:
    return f"{PAGE}/colecao/{quote(collection, safe='')}"


def tools_of(house: House) -> Tools:
    tools: Tools = house.retoma.tools["embeddings"]
    return tools


async def read(house: House, fn: Callable[[Transaction], T]) -> T:
    return await (await house.retoma.database()).read(fn)


def led(who: Looker, place: str) -> Response:
    """To where the new thing is seen, or away from where the old one was."""
    if who.htmx:
        return Response(status_code=204, headers={"HX-Redirect": place})
    return RedirectResponse(place, status_code=303)
