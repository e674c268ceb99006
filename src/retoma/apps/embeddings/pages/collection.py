"""One collection: how far it is, by which model, its documents; embedded anew, or deleted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Path
from starlette.responses import Response

from retoma.apps.embeddings import service
from retoma.apps.embeddings.pages.presenters import (
    COLORS,
    CONCERN,
    DEAD,
    PAGE,
    SEARCH,
    address,
    present_progress,
    redirect_to,
    status_of,
)
from retoma.engine.rules.states import State
from retoma.web.pages.asked import Blank, Number
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Screen, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, page_router, serve_screen
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.words import say

routes = page_router()

ROWS: Final = 50  # documents

CollectionName = Annotated[str, Path(max_length=100)]
EmbeddedOf = Annotated[bool | None, Blank]
After = Annotated[Number | None, Blank]


@dataclass(frozen=True, slots=True)
class CollectionScreen(Screen):
    """A collection, and a page of its documents."""

    name: str
    embedded: bool | None = None
    after: int | None = None

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        retoma = self.pages.house.retoma
        collection, progress = await service.get_collection(retoma, self.name)
        found = await service.list_documents(
            retoma, self.name, embedded=self.embedded, after=self.after or 0, limit=ROWS + 1
        )
        head = self.pages.render(
            "embeddings/collection_head.html",
            self.view,
            collection=collection,
            home=PAGE,
            dead=DEAD,
            **present_progress(progress),
        )
        rows = {
            f"document-{each.id}": self.pages.render(
                "embeddings/document_row.html",
                self.view,
                document=each,
                status=status_of(each),
                look=COLORS[status_of(each)],
                parked=each.state == State.PARKED and not each.embedded,
            )
            for each in found[:ROWS]
        }
        table = self.pages.render("rows.html", self.view, rows=rows.values())
        more = len(found) > ROWS
        turns = pager(
            self.pages,
            self.view,
            empty=not rows,
            nothing=say("No document is like that now."),
            way=(say("Clear"), address(self.name)),
            following=self.link(after=found[ROWS - 1].id) if more else None,
            first=self.link() if self.after else None,
            by_age=False,
        )
        return [
            drawn("collection-head", head),
            drawn("rows", table, rows),
            turns,
        ]

    def link(self, after: int | None = None) -> str:
        embedded = None if self.embedded is None else int(self.embedded)
        return address(self.name) + query_of({"prontos": embedded, "depois": after})


def collection_screen(
    name: CollectionName, who: ALooker, prontos: EmbeddedOf = None, depois: After = None
) -> CollectionScreen:
    return CollectionScreen(who.pages, who.view, name, prontos, depois)


AScreen = Annotated[CollectionScreen, Depends(collection_screen)]


@routes.get("/embeddings/colecao/{name}")
async def show(_: Viewer, who: ALooker, screen: AScreen) -> Response:
    return await who.page(
        screen,
        "embeddings/collection.html",
        name=screen.name,
        place=address(screen.name),
        search=SEARCH,
        embedded=screen.embedded,
    )


serve_screen(routes, "/embeddings/colecao/{name}", collection_screen)


@routes.post("/embeddings/colecao/{name}/{verb}")
async def steer(name: CollectionName, verb: str, actor: Operator, who: ALooker) -> Response:
    """ "Refazer os vetores", "Apagar"."""
    retoma = who.house.retoma
    match verb:
        case "refazer":
            started = await service.reembed_collection(retoma, name, actor=actor.name)
            said = say("{n} documents are embedded anew", n=started.jobs)
            return did(who, who.view.tell(said), address(name))
        case "apagar":
            await service.remove_collection(retoma, name, actor=actor.name)
            return redirect_to(who, PAGE)
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))
