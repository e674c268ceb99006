"""Pages that were refused, to be looked at: in a frame in which nothing runs and nothing is loaded (H-44)."""

from typing import Any, Final

from starlette.responses import Response

from retoma.apps.matches import service
from retoma.engine.query import EvidenceSeen
from retoma.web.pages.kit import Looker, Pages
from retoma.web.pages.view import View

# It has no origin, no script, no style, no picture, no form, no address to go to.
SANDBOX: Final = "sandbox; default-src 'none'; form-action 'none'; frame-ancestors 'self'"


async def kept(
    pages: Pages, view: View, job: int | None, sha256: str | None
) -> EvidenceSeen | None:
    """What is known of a page that was kept; None: there is none, it is gone, or not for these eyes."""
    if not view.steers:
        return None
    return await service.snapshots.find_snapshot(pages.house.retoma, job, sha256)


async def frame(who: Looker, sha256: str | None, error: Any) -> Response:
    """By the charset that came with it, so that a person reads what a parser has."""
    return Response(
        await service.snapshots.read_page(who.house.retoma, sha256, error),
        headers={
            "Content-Type": "text/html; charset=utf-8",
            "Content-Security-Policy": SANDBOX,
            "Cache-Control": "no-store",
        },
    )
