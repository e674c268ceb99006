"""The page of the disk: what takes how much, how long what stays, what retention last deleted."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from fastapi import Depends, Request
from starlette.responses import Response

from retoma.services.disk import disk_seen
from retoma.web.pages.kit import ALooker, Pages, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import page_router, streamed
from retoma.web.pages.view import View
from retoma.web.sign_in import Admin
from retoma.words import Said, say

routes = page_router()

PAUSE: Final = 5.0  # seconds between two drawings: sizes change slowly
KEPT: Final[Mapping[str, Said]] = {
    "keep_done": say("Done, skipped and canceled jobs"),
    "keep_dead": say("Dead letters"),
    "keep_events": say("Events of deleted jobs, and the audit log"),
}
RETIRED: Final[Mapping[str, Said]] = {
    "jobs": say("jobs"),
    "batches": say("batches"),
    "events": say("events"),
    "evidence": say("pieces of evidence"),
    "own": say("rows of runners, minutes and ticks"),
    "reuse": say("results for use again"),
}


@dataclass(frozen=True, slots=True)
class DiskScreen:
    """One look."""

    pages: Pages = field(compare=False, repr=False)
    view: View

    @property
    def key(self) -> Hashable:
        return self

    @property
    def concern(self) -> Concern:
        return Concern(pause=PAUSE)

    async def draw(self) -> Sequence[Region]:
        seen = await disk_seen(self.pages.house.retoma, self.pages.settings)
        html = self.pages.render(
            "disk_sizes.html", self.view, seen=seen, disk=seen.disk, kept=KEPT, retired=RETIRED
        )
        return [drawn("sizes", html)]


def disk_screen(who: ALooker) -> DiskScreen:
    return DiskScreen(who.pages, who.view)


AScreen = Annotated[DiskScreen, Depends(disk_screen)]


@routes.get("/disk")
async def show(_: Admin, who: ALooker, screen: AScreen) -> Response:
    return await who.page(screen, "disk.html")


@routes.get("/live/disk")
async def live(_: Admin, who: ALooker, request: Request, screen: AScreen) -> Response:
    return await streamed(request, who, screen)
