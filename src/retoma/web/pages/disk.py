"""The page of the disk: what takes how much, how long what stays, what retention last deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from retoma.services.disk import disk_seen
from retoma.web.pages.kit import Screen, drawn
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import page_router, plain, serve_screen
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
class DiskScreen(Screen):
    """One look."""

    @property
    def concern(self) -> Concern:
        return Concern(pause=PAUSE)

    async def draw(self) -> Sequence[Region]:
        seen = await disk_seen(self.pages.house.retoma, self.pages.settings)
        html = self.pages.render(
            "disk_sizes.html", self.view, seen=seen, disk=seen.disk, kept=KEPT, retired=RETIRED
        )
        return [drawn("sizes", html)]


serve_screen(routes, "/disk", plain(DiskScreen), "disk.html", admits=Admin)
