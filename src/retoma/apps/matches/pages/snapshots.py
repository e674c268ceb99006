"""Pages that were refused, to be looked at: in a frame in which nothing runs and nothing is loaded (H-44)."""

from typing import Any, Final

from starlette.responses import Response

from retoma.apps.matches.clients.parsers.reading import shown
from retoma.apps.matches.replay import charset_in
from retoma.engine.query import EvidenceSeen
from retoma.engine.rules.errors import NotFound
from retoma.web.pages.kit import Looker, Pages
from retoma.web.pages.view import View
from retoma.words import say

# It has no origin, no script, no style, no picture, no form, no address to go to.
SANDBOX: Final = "sandbox; default-src 'none'; form-action 'none'; frame-ancestors 'self'"


async def kept(
    pages: Pages, view: View, job: int | None, sha256: str | None
) -> EvidenceSeen | None:
    """What is known of a page that was kept; None: there is none, it is gone, or not for these eyes."""
    if job is None or sha256 is None or not view.steers:
        return None
    pieces = await pages.house.retoma.evidence(job)
    return next((each for each in reversed(pieces) if each.sha256 == sha256), None)


async def frame(who: Looker, sha256: str | None, error: Any) -> Response:
    """By the charset that came with it, so that a person reads what a parser has."""
    if sha256 is None:
        raise NotFound(say("no page was kept of it"))
    page = await who.house.retoma.evidence_bytes(sha256)
    return Response(
        shown(page, charset_in(error)),
        headers={
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": SANDBOX,
            "Cache-Control": "no-store",
        },
    )
