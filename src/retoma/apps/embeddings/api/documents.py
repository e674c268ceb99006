"""Documents: taken one by one or many at once, looked at, deleted. What cannot be taken is told of."""

from datetime import datetime
from functools import partial
from io import SEEK_END
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from pydantic import Field

from retoma.apps.embeddings import store
from retoma.apps.embeddings.api.how import (
    CollectionName,
    DocumentId,
    came_by,
    has_webhook,
    model_now,
    read,
    routes,
)
from retoma.apps.embeddings.files import UnreadableFile, text_of
from retoma.apps.embeddings.model import (
    LONGEST_NAME,
    MOST_DOCUMENTS,
    MOST_PAIRS,
    STATUS,
    JobStatus,
    MetadataValue,
    NewDocument,
    checked_name,
    checked_rule,
    parse_pairs,
)
from retoma.apps.embeddings.store.documents import Added
from retoma.apps.uploads import in_thread, spooled
from retoma.db import Transaction
from retoma.engine.errors import BadInput
from retoma.engine.states import State
from retoma.engine.transaction import Transaction as Writing
from retoma.web import AHouse, AVisit, House, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.visit import Visit
from retoma.web.wire import Limit, NextPage, PageOf, Shown
from retoma.words import say

# Read by hand: what one text has wrong is told of that text alone.
BODY: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["collection", "documents"],
    "properties": {
        "collection": {"type": "string", "examples": ["livros"]},
        "documents": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_DOCUMENTS,
            "items": {
                "type": "object",
                "required": ["name", "text"],
                "properties": {
                    "name": {"type": "string"},
                    "text": {"type": "string"},
                    "metadata": {
                        "type": "object",
                        "maxProperties": MOST_PAIRS,
                        "additionalProperties": {"type": ["string", "integer", "boolean"]},
                        "examples": [{"autor": "Ana", "ano": 2024}],
                    },
                },
            },
        },
    },
}


class FlawShown(Shown):
    """A document that was not taken."""

    place: int = Field(description="Which of those that were sent, from 0.")
    name: str
    code: str
    message: str


class Taken(Shown):
    """A document that was taken, or that was there."""

    place: int
    id: int


class AddedShown(Shown):
    """What became of each of them."""

    batch: int | None = Field(description="`/api/stream?batch=` tells what happens to the new.")
    new: list[Taken]
    already: list[Taken] = Field(description="The same name and text were there before.")
    refused: list[FlawShown]


class DocumentShown(Shown):
    id: int
    collection: str
    name: str
    sha256: str
    characters: int
    chunks: int
    edition: int
    embedded: bool = Field(description="As its collection wants it now.")
    job: int | None
    status: JobStatus | None = Field(description="Of its job; null: it is long gone.")
    code: str | None = Field(description="What its last attempt failed by.")
    metadata: dict[str, MetadataValue]
    created_by: str
    created_at: datetime | None
    embedded_at: datetime | None


@routes.post(
    "/api/embeddings/documents",
    status_code=201,
    responses={200: {"model": AddedShown, "description": "Nothing was new."}},
    openapi_extra={
        "requestBody": {"content": {"application/json": {"schema": BODY}}, "required": True}
    },
)
async def add_documents(
    request: Request, who: Operator, house: AHouse, visit: AVisit, response: Response
) -> AddedShown:
    """Each becomes a job. The same name and text again is the document that is there, the same name with
    another text takes its place; a collection that is not there is made. 200: nothing was new."""
    collection, given = _parsed(await request.json())
    added = await _added(house, visit, collection, given, who.name)
    response.status_code = 201 if added.new else 200
    return added


async def _added(
    house: House, visit: Visit, collection: str, given: list[NewDocument], actor: str
) -> AddedShown:
    name, model, came = checked_name(collection), model_now(house), came_by(visit)
    follow = has_webhook(house)

    def add(tx: Writing) -> Added:
        store.collections.find_or_add(tx, name, model, checked_rule(), actor=actor)
        there = store.collections.lock(tx, name)
        return store.documents.add(
            tx, there.id, name, given, actor=actor, follow=follow, **came
        )

    added = await house.retoma.write(add)
    return AddedShown(
        batch=added.batch,
        new=[Taken(place=place, id=id_) for place, id_ in added.new.items()],
        already=[Taken(place=place, id=id_) for place, id_ in added.already.items()],
        refused=[FlawShown.model_validate(flaw) for flaw in added.flaws],
    )


@routes.post(
    "/api/embeddings/files",
    status_code=201,
    responses={200: {"model": AddedShown, "description": "Nothing was new."}},
    openapi_extra={
        "requestBody": {
            "content": {
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
            },
            "required": True,
        }
    },
)
async def add_file(
    request: Request,
    who: Operator,
    house: AHouse,
    visit: AVisit,
    response: Response,
    collection: Annotated[str, Query(max_length=100, description="A new name makes one.")],
    name: Annotated[str, Query(max_length=LONGEST_NAME, description="Of the document.")],
    metadata: Annotated[
        list[str] | None, Query(max_length=MOST_PAIRS, description="`key=value`, each.")
    ] = None,
) -> AddedShown:
    """One file as the body: PDF, DOCX, HTML, or a text in UTF-8. What it says becomes a document of the collection;
    a file of which nothing can be read is in `refused`, with the reason."""
    checked_name(collection)
    pairs = parse_pairs(metadata or ()) or None
    async with spooled(request.stream()) as file:
        size = file.seek(0, SEEK_END)
        file.seek(0)
        async with house.room.hold(size):
            content = await in_thread(file.read)
            try:
                text = await text_of(house.retoma.isolate, content, name)
            except UnreadableFile as error:
                response.status_code = 200
                flaw = FlawShown(place=0, name=name, code=error.code, message=str(error.why))
                return AddedShown(batch=None, new=[], already=[], refused=[flaw])
    added = await _added(house, visit, collection, [NewDocument(name, text, pairs)], who.name)
    response.status_code = 201 if added.new else 200
    return added


@routes.get("/api/embeddings/collections/{name}/documents")
async def list_documents(
    name: CollectionName,
    _: Viewer,
    house: AHouse,
    embedded: Annotated[
        bool | None, Query(description="Only those that are, or are not.")
    ] = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[DocumentShown]:
    """In the order they came."""
    stamp = Cursor("embeddings_documents", f"{name} {embedded}")
    [after] = stamp.read(cursor, int) or [0]

    def page(tx: Transaction) -> list[dict[str, Any]]:
        found = store.collections.get(tx, name)
        return store.documents.list_documents(
            tx, found.id, embedded=embedded, after=after, n=limit + 1
        )

    found = await read(house, page)
    shown = [document_told(each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.get("/api/embeddings/documents/{document}")
async def get_document(document: DocumentId, _: Viewer, house: AHouse) -> DocumentShown:
    """Whether it is embedded, and where its job is."""
    return document_told(await read(house, partial(store.documents.show, document=document)))


@routes.delete("/api/embeddings/documents/{document}", status_code=204)
async def remove_document(document: DocumentId, who: Operator, house: AHouse) -> Response:
    """It is found no more. Its job is canceled where it is open."""
    await house.retoma.write(lambda tx: store.documents.remove(tx, document, actor=who.name))
    return Response(status_code=204)


def document_told(told: dict[str, Any]) -> DocumentShown:
    state = told.pop("state")
    return DocumentShown(**told, status=None if state is None else STATUS[State(state)])


def _parsed(told: Any) -> tuple[str, list[NewDocument]]:
    if not isinstance(told, dict) or told.keys() != {"collection", "documents"}:
        raise BadInput(say("the body has a collection and documents, and nothing else"))
    collection, given = told["collection"], told["documents"]
    if not isinstance(collection, str) or not isinstance(given, list):
        raise BadInput(say("the body has a collection and documents, and nothing else"))
    if not 1 <= len(given) <= MOST_DOCUMENTS:
        raise BadInput(say("1 to {most} documents come at once", most=MOST_DOCUMENTS))
    return collection, [_document(place, each) for place, each in enumerate(given)]


def _document(place: int, given: Any) -> NewDocument:
    if (
        not isinstance(given, dict)
        or given.keys() - {"metadata"} != {"name", "text"}
        or not isinstance(given["name"], str)
        or not isinstance(given["text"], str)
        or not isinstance(given.get("metadata", {}), dict)
    ):
        raise BadInput(
            say(
                "document {place} has a name, a text and, if you like, metadata, and nothing else",
                place=place,
            )
        )
    return NewDocument(given["name"], given["text"], given.get("metadata"))
