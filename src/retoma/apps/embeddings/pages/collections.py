"""All collections and how far each is; and what every runner does for them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Final

from retoma.apps.embeddings import service
from retoma.apps.embeddings.pages.presenters import CONCERN, PAGE, address, present_progress
from retoma.web.pages.asked import Blank, Name
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import page_router, serve_screen
from retoma.web.pages.runners import STANDS
from retoma.words import say

routes = page_router()

LIST: Final = 25  # collections, each with its counts
NO_COLLECTIONS: Final = say(
    "No collections yet. Hand texts in; in a shell: `retoma embeddings embed FOLDER --collection NAME`."
)

After = Annotated[Name | None, Blank]


@dataclass(frozen=True, slots=True)
class CollectionsScreen(Screen):
    """Collections by their names."""

    after: str | None = None

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        overview = await service.get_overview(
            self.pages.house.retoma, after=self.after or "", limit=LIST + 1
        )
        found = overview.collections
        rows = {
            f"collection-{each.id}": self.pages.render(
                "embeddings/collection_row.html",
                self.view,
                collection=each,
                place=address(each.name),
                **present_progress(progress),
            )
            for each, progress in found[:LIST]
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        more = len(found) > LIST
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=NO_COLLECTIONS,
            way=(say("Hand texts in"), f"{PAGE}/nova"),
            following=PAGE + query_of({"depois": found[LIST - 1][0].name}) if more else None,
            first=PAGE if self.after else None,
            by_age=False,
        )
        runners = self.pages.render(
            "embeddings/runners.html",
            self.view,
            runners=overview.runners,
            words=STANDS,
            metrics=asdict(overview.metrics),
        )
        return [
            drawn("rows", table, rows),
            turns,
            drawn("embedding-runners", runners),
        ]


def collections_screen(who: ALooker, depois: After = None) -> CollectionsScreen:
    return CollectionsScreen(who.pages, who.view, depois)


for path in ("/embeddings", "/embeddings/"):
    serve_screen(routes, path, collections_screen, "embeddings/collections.html")
