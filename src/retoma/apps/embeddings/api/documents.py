"""Documents: taken one by one or many at once, looked at, deleted. What cannot be taken is told of."""

from datetime import datetime
from io import SEEK_END
from typing import Annotated, Any, Final

from fastapi import Query, Request, Response
from pydantic import Field

from retoma.apps.embeddings import service
from retoma.apps.embeddings.api.wire import CollectionName, DocumentId, origin_of, routes
from retoma.apps.embeddings.model import (
    LONGEST_NAME,
    MOST_DOCUMENTS,
    MOST_PAIRS,
    JobStatus,
    MetadataValue,
    NewDocument,
    checked_name,
    parse_pairs,
)
from retoma.apps.embeddings.store.documents import Added
from retoma.engine.rules.errors import BadInput
from retoma.toolkit.uploads import in_thread, spooled
from retoma.web import AHouse, AVisit, Operator, Viewer
from retoma.web.cursor import Cursor
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
    collection, documents = _parse_body(await request.json())
    added = await service.add_documents(
        house.retoma,
        collection,
        documents,
        **origin_of(who, visit),
    )
    return _shown(added, response)


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
            added = await service.add_file(
                house.retoma,
                collection,
                name,
                await in_thread(file.read),
                metadata=pairs,
                **origin_of(who, visit),
            )
    return _shown(added, response)


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

    found = await service.list_documents(
        house.retoma, name, embedded=embedded, after=after, limit=limit + 1
    )
    shown = [DocumentShown.model_validate(each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.get("/api/embeddings/documents/{document}")
async def get_document(document: DocumentId, _: Viewer, house: AHouse) -> DocumentShown:
    """Whether it is embedded, and where its job is."""
    return DocumentShown.model_validate(await service.get_document(house.retoma, document))


@routes.delete("/api/embeddings/documents/{document}", status_code=204)
async def remove_document(document: DocumentId, who: Operator, house: AHouse) -> Response:
    """It is found no more. Its job is canceled where it is open."""
    await service.remove_document(house.retoma, document, actor=who.name)
    return Response(status_code=204)


def _shown(added: Added, response: Response) -> AddedShown:
    """201 where a document is new, else 200."""
    response.status_code = 201 if added.new else 200
    return AddedShown(
        batch=added.batch,
        new=[Taken(place=place, id=id_) for place, id_ in added.new.items()],
        already=[Taken(place=place, id=id_) for place, id_ in added.already.items()],
        refused=[FlawShown.model_validate(flaw) for flaw in added.flaws],
    )


def _parse_body(body: Any) -> tuple[str, list[NewDocument]]:
    if not isinstance(body, dict) or body.keys() != {"collection", "documents"}:
        raise BadInput(say("the body has a collection and documents, and nothing else"))
    collection, given = body["collection"], body["documents"]
    if not isinstance(collection, str) or not isinstance(given, list):
        raise BadInput(say("the body has a collection and documents, and nothing else"))
    if not 1 <= len(given) <= MOST_DOCUMENTS:
        raise BadInput(say("1 to {most} documents come at once", most=MOST_DOCUMENTS))
    return collection, [_parse_document(place, each) for place, each in enumerate(given)]


def _parse_document(place: int, given: Any) -> NewDocument:
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
