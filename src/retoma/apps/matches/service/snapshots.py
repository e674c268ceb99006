"""Refused pages that were kept: read as text, and as the first draft of a match."""

from typing import Any

from retoma.apps.matches.clients.parsers.apart import draft
from retoma.apps.matches.clients.parsers.reading import shown
from retoma.apps.matches.sites import site_of
from retoma.apps.matches.store.tasks import ScrapeTask
from retoma.engine.isolation.charset import charset_of
from retoma.engine.query import EvidenceSeen
from retoma.engine.rules.errors import NotFound
from retoma.library import Retoma
from retoma.words import say


async def find_snapshot(
    retoma: Retoma, job: int | None, sha256: str | None
) -> EvidenceSeen | None:
    """The evidence of a job that holds a refused page; None: nothing was kept, or it is gone."""
    if job is None or sha256 is None:
        return None
    pieces = await retoma.evidence.list(job)
    return next((each for each in reversed(pieces) if each.sha256 == sha256), None)


async def read_page(retoma: Retoma, sha256: str | None, error: Any) -> str:
    """A refused page as text, by the charset that came with it."""
    if sha256 is None:
        raise NotFound(say("no page was kept of it"))
    return shown(await retoma.evidence.read(sha256), charset_in(error))


async def draft_match(retoma: Retoma, task: ScrapeTask) -> dict[str, Any]:
    """What the refused page of a task seems to say; empty: its bytes are gone, or nothing can be read."""
    if task.snapshot is None:
        return {}
    try:
        page = await retoma.evidence.read(task.snapshot)
    except NotFound:
        return {}
    return await draft(retoma.isolate.read, site_of(task.league), page, charset_in(task.error))


def charset_in(error: Any) -> str | None:
    """The charset that the headers named with which a page came."""
    headers = error.get("headers") if isinstance(error, dict) else None
    return charset_of(str(headers.get("content-type", ""))) if headers else None
