"""Collections: made, looked at, embedded anew by another model, deleted."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import Query, Response
from pydantic import Field, StrictInt, StrictStr

from retoma.apps.embeddings import service
from retoma.apps.embeddings.api.wire import CollectionName, origin_of, routes
from retoma.apps.embeddings.export import MEDIA, Format, listing_for
from retoma.apps.embeddings.model import OVERLAP, SIZE, SIZES
from retoma.apps.embeddings.store.collections import Collection
from retoma.web import AHouse, AVisit, House, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.files import saved_list
from retoma.web.wire import Body, Limit, NextPage, PageOf, Shown

LEAST, MOST = SIZES
Size = Annotated[
    StrictInt,
    Field(ge=LEAST, le=MOST, description="Characters of a chunk.", examples=[SIZE]),
]
Overlap = Annotated[
    StrictInt,
    Field(
        ge=0,
        le=MOST // 2,
        description="How much of a chunk the next may say again: half of it at most.",
        examples=[OVERLAP],
    ),
]


class NewCollection(Body):
    """A name, and how its texts are cut."""

    name: Annotated[StrictStr, Field(examples=["livros"])]
    size: Size = SIZE
    overlap: Overlap = OVERLAP


class OtherRule(Body):
    """How its texts are cut from now on; nothing: as before."""

    size: Size | None = None
    overlap: Overlap | None = None


class ProgressShown(Shown):
    """How many of its documents are where."""

    documents: int
    embedded: int = Field(description="As the collection wants it now.")
    waiting: int
    processing: int
    failed: int = Field(description="Their jobs have ended without: see the DLQ.")
    parked: int = Field(description="They wait for a person.")
    chunks: int


class CollectionLine(Shown):
    name: str
    model: str
    version: str
    dims: int
    size: int
    overlap: int
    edition: int = Field(description="How often what it wants was changed, from 1.")
    batch: int | None = Field(description="The batch by which it was last embedded anew.")
    created_by: str
    created_at: datetime | None


class CollectionShown(CollectionLine):
    progress: ProgressShown


class ReembeddingShown(Shown):
    """What was set going."""

    collection: CollectionShown
    changed: bool = Field(description="Whether its model or its rule is new.")
    batch: int | None = Field(description="null: nothing was left to do.")
    jobs: int


@routes.post(
    "/api/embeddings/collections",
    status_code=201,
    responses={200: {"model": CollectionShown}},
)
async def add_collection(body: NewCollection, who: Operator, house: AHouse) -> CollectionShown:
    """Its model is the one the settings name now; 409 where there is one of that name."""
    await service.add_collection(
        house.retoma, body.name, size=body.size, overlap=body.overlap, actor=who.name
    )
    return await _shown(house, body.name)


@routes.get("/api/embeddings/collections")
async def list_collections(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[CollectionLine]:
    """By their names."""
    stamp = Cursor("embeddings_collections", None)
    [after] = stamp.read(cursor, str) or [""]
    found = await service.list_collections(house.retoma, after=after, limit=limit + 1)
    lines = [_line(each) for each in found[:limit]]
    return PageOf(items=lines, next=stamp.write(lines[-1].name if len(found) > limit else None))


@routes.get("/api/embeddings/collections/{name}")
async def get_collection(name: CollectionName, _: Viewer, house: AHouse) -> CollectionShown:
    """How it is cut and embedded, and how far that is."""
    return await _shown(house, name)


@routes.get(
    "/api/embeddings/collections/{name}/export",
    response_class=Response,
    responses={
        200: {
            "description": "One row for each chunk that has its vector.",
            "content": {
                media: {"schema": {"type": "string", "format": "binary"}}
                for media in MEDIA.values()
            },
        }
    },
)
async def export_collection(
    name: CollectionName,
    _: Viewer,
    house: AHouse,
    as_: Annotated[
        Format,
        Query(
            alias="format", description="`jsonl`, or `parquet`, which needs `retoma[parquet]`."
        ),
    ] = Format.JSONL,
) -> Response:
    """Its chunks as a file: document, metadata, place, text, model and vector."""
    pages = await service.export_collection(house.retoma, name)
    make = listing_for(as_)
    return await saved_list(house, f"{name}.{as_}", MEDIA[as_], make, pages)


@routes.post("/api/embeddings/collections/{name}/reembed")
async def reembed(
    name: CollectionName, body: OtherRule, who: Operator, house: AHouse, visit: AVisit
) -> ReembeddingShown:
    """Have it embedded by the model that the settings name now, as one batch. Asked again it goes on with
    what is left. A document is found by its old vectors until it has new ones."""
    started = await service.reembed_collection(
        house.retoma,
        name,
        size=body.size,
        overlap=body.overlap,
        **origin_of(who, visit),
    )
    return ReembeddingShown(collection=await _shown(house, name), **asdict(started))


@routes.delete("/api/embeddings/collections/{name}", status_code=204)
async def remove_collection(name: CollectionName, who: Operator, house: AHouse) -> Response:
    """With all its documents. Vectors that no other collection needs go an hour later."""
    await service.remove_collection(house.retoma, name, actor=who.name)
    return Response(status_code=204)


async def _shown(house: House, name: str) -> CollectionShown:
    found, progress = await service.get_collection(house.retoma, name)
    return CollectionShown(
        **_line(found).model_dump(), progress=ProgressShown.model_validate(progress)
    )


def _line(found: Collection) -> CollectionLine:
    return CollectionLine(
        name=found.name,
        model=found.model.name,
        version=found.model.version,
        dims=found.model.dims,
        size=found.rule.size,
        overlap=found.rule.overlap,
        edition=found.edition,
        batch=found.batch,
        created_by=found.created_by,
        created_at=found.created_at,
    )
