"""What the pages of embeddings share: addresses, the events that redraw them, how rows are presented."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response

from retoma.apps.embeddings.model import KIND, JobStatus, meaning_of
from retoma.apps.embeddings.service import JobOfDocument
from retoma.apps.embeddings.store.collections import Progress
from retoma.apps.embeddings.store.documents import Document
from retoma.web.pages.bars import parts_of
from retoma.web.pages.kit import Looker
from retoma.web.pages.live import Concern
from retoma.web.pages.view import View

S = JobStatus

PAGE: Final = "/embeddings"
DEAD: Final = f"{PAGE}/falhas"
SEARCH: Final = f"{PAGE}/busca"
NEW: Final = f"{PAGE}/nova"
CONCERN: Final = Concern(kinds=(KIND,), pause=1.0)

# The colour of a status; its text is its own name.
COLORS: Final[Mapping[JobStatus, str]] = {
    S.PENDING: "waiting",
    S.PROCESSING: "running",
    S.COMPLETED: "done",
    S.FAILED: "dead",
}
# Of a bar, from left to right: jobs that have ended, then those that run.
PARTS: Final = (S.COMPLETED, S.FAILED, S.PROCESSING)


def count_by_status(progress: Progress) -> dict[JobStatus, int]:
    """How many documents have which status, in the document's words."""
    return {
        S.PENDING: progress.waiting + progress.parked,
        S.PROCESSING: progress.processing,
        S.COMPLETED: progress.embedded,
        S.FAILED: progress.failed,
    }


def present_progress(progress: Progress) -> dict[str, Any]:
    """The progress of a collection, as templates show it."""
    counts = count_by_status(progress)
    whole = max(sum(counts.values()), 1)
    return {
        "progress": progress,
        "counts": counts,
        "looks": COLORS,
        "bar": parts_of(((COLORS[each], counts[each]) for each in PARTS), whole),
        "share": counts[S.COMPLETED] / whole,
    }


def present_job(found: JobOfDocument, view: View) -> dict[str, Any]:
    """A dead or parked job, what its code means, and its document with the address of its collection."""
    document = found.document
    return {
        "job": found.job,
        "message": found.cause,
        "meaning": meaning_of(found.job.code, view.language),
        "document": document,
        "place": document and address(document.collection),
    }


def status_of(document: Document) -> JobStatus:
    """The status of a document: that of its vectors, not of its job."""
    if document.embedded:
        return S.COMPLETED
    # A job that has completed while its collection changed has not embedded it as it is wanted now.
    return S.FAILED if document.status in (None, S.COMPLETED) else document.status


def address(collection: str) -> str:
    return f"{PAGE}/colecao/{quote(collection, safe='')}"


def redirect_to(who: Looker, place: str) -> Response:
    """Lead a browser to another page, after a form or an htmx request."""
    if who.htmx:
        return Response(status_code=204, headers={"HX-Redirect": place})
    return RedirectResponse(place, status_code=303)
