"""One collection: how far it is, by which model, its documents; embedded anew, or deleted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, Path, Request
from starlette.responses import Response

from retoma.access import Person
from retoma.apps.embeddings import store
from retoma.apps.embeddings.model import STATUS, JobStatus
from retoma.apps.embeddings.pages.looks import (
    CONCERN,
    DEAD,
    LOOKS,
    PAGE,
    SEARCH,
    address,
    led,
    progress_given,
    read,
    tools_of,
)
from retoma.apps.embeddings.providers import build_provider
from retoma.apps.embeddings.steps import model_of
from retoma.apps.embeddings.store.collections import Collection, Progress
from retoma.db import Transaction
from retoma.engine.states import State
from retoma.web.pages.asked import Blank, Number
from retoma.web.pages.jobs import query_of
from retoma.web.pages.kit import ALooker, Looker, Pages, drawn, pager
from retoma.web.pages.live import Concern, Region
from retoma.web.pages.route import did, page_router, streamed
from retoma.web.pages.view import View
from retoma.web.problems import Refusal
from retoma.web.sign_in import Operator, Viewer
from retoma.words import Said, say

routes = page_router()

ROWS: Final = 50  # documents

CollectionName = Annotated[str, Path(max_length=100)]
EmbeddedOf = Annotated[bool | None, Blank]
After = Annotated[Number | None, Blank]


def status_of(document: dict[str, Any]) -> JobStatus:
    """Of a document, in the document's words: what it has counts, not what its job says."""
    if document["embedded"]:
        return JobStatus.COMPLETED
    if document["state"] is None:
        return JobStatus.FAILED
    status = STATUS[State(document["state"])]
    # Its job has ended, and not for what its collection wants now.
    return JobStatus.FAILED if status is JobStatus.COMPLETED else status


@dataclass(frozen=True, slots=True)
class CollectionScreen:
    """A collection, and a page of its documents."""

    pages: Pages = field(compare=False, repr=False)
    view: View
    name: str
    embedded: bool | None = None
    after: int | None = None

    @property
    def key(self) -> "CollectionScreen":
        return self

    @property
    def concern(self) -> Concern:
        return CONCERN

    async def draw(self) -> Sequence[Region]:
        collection, progress, found = await read(self.pages.house, self._look)
        head = self.pages.render(
            "embeddings/collection_head.html",
            self.view,
            collection=collection,
            home=PAGE,
            dead=DEAD,
            **progress_given(progress),
        )
        rows = {
            f"document-{each['id']}": self.pages.render(
                "embeddings/document_row.html",
                self.view,
                document=each,
                status=status_of(each),
                look=LOOKS[status_of(each)],
                parked=each["state"] == State.PARKED and not each["embedded"],
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
            following=self.link(after=found[ROWS - 1]["id"]) if more else None,
            first=self.link() if self.after else None,
            by_age=False,
        )
        return [
            drawn("collection-head", head),
            drawn("rows", table, rows),
            turns,
        ]

    def _look(self, tx: Transaction) -> tuple[Collection, Progress, list[dict[str, Any]]]:
        collection = store.collections.get(tx, self.name)
        found = store.documents.list_documents(
            tx, collection.id, embedded=self.embedded, after=self.after or 0, n=ROWS + 1
        )
        return collection, store.collections.progress(tx, collection), found

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


@routes.get("/live/embeddings/colecao/{name}")
async def live(_: Viewer, who: ALooker, request: Request, screen: AScreen) -> Response:
    return await streamed(request, who, screen)


@routes.post("/embeddings/colecao/{name}/{verb}")
async def steer(name: CollectionName, verb: str, actor: Operator, who: ALooker) -> Response:
    """ "Refazer os vetores", "Apagar"."""
    match verb:
        case "refazer":
            return did(who, who.view.tell(await _made_anew(who, name, actor)), address(name))
        case "apagar":
            await _removed(who, name, actor)
            return led(who, PAGE)
        case _:
            raise Refusal("not_found", say("there is nothing at this address"))


async def _made_anew(who: Looker, name: str, actor: Person) -> Said:
    """By the model of this process; what is as its collection wants it already is left alone."""
    retoma, tools = who.house.retoma, tools_of(who.house)
    model = model_of(tools.one(build_provider))
    follow = tools.settings.embeddings_webhook is not None
    await retoma.write(
        lambda tx: store.collections.change(tx, name, model, None, actor=actor.name)
    )
    _, n = await retoma.write(
        lambda tx: store.collections.reembed(tx, name, actor=actor.name, follow=follow)
    )
    return say("{n} documents are embedded anew", n=n)


async def _removed(who: Looker, name: str, actor: Person) -> None:
    retoma = who.house.retoma
    gone = False
    while not gone:
        gone = await retoma.write(
            lambda tx: store.collections.remove_some(tx, name, actor=actor.name)
        )
