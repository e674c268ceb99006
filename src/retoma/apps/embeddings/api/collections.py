"""Collections: made, looked at, embedded anew by another model, deleted."""

from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import Query, Response
from pydantic import Field, StrictInt, StrictStr

from retoma.apps.embeddings import store
from retoma.apps.embeddings.api.how import (
    CollectionName,
    came_by,
    has_webhook,
    model_now,
    read,
    routes,
)
from retoma.apps.embeddings.export import MEDIA, Format, exported, listing_for
from retoma.apps.embeddings.model import OVERLAP, SIZE, SIZES, checked_name, checked_rule
from retoma.apps.embeddings.store.collections import Collection, Progress
from retoma.db import Transaction
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


@routes.post("/api/embeddings/collections", status_code=201)
async def add_collection(body: NewCollection, who: Operator, house: AHouse) -> CollectionShown:
    """Its model is the one the settings name now; 409 where there is one of that name."""
    name, rule = checked_name(body.name), checked_rule(body.size, body.overlap)
    model = model_now(house)
    await house.retoma.write(
        lambda tx: store.collections.add(tx, name, model, rule, actor=who.name)
    )
    return await shown(house, name)


@routes.get("/api/embeddings/collections")
async def list_collections(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[CollectionLine]:
    """By their names."""
    stamp = Cursor("embeddings_collections", None)
    [after] = stamp.read(cursor, str) or [""]
    found = await read(
        house, partial(store.collections.list_collections, after=after, n=limit + 1)
    )
    lines = [line_told(each) for each in found[:limit]]
    return PageOf(items=lines, next=stamp.write(lines[-1].name if len(found) > limit else None))


@routes.get("/api/embeddings/collections/{name}")
async def get_collection(name: CollectionName, _: Viewer, house: AHouse) -> CollectionShown:
    """How it is cut and embedded, and how far that is."""
    return await shown(house, name)


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
    found = await read(house, partial(store.collections.get, name=name))
    make = listing_for(as_)
    pages = exported(house.retoma, found.id)
    return await saved_list(house, f"{name}.{as_}", MEDIA[as_], make, pages)


@routes.post("/api/embeddings/collections/{name}/reembed")
async def reembed(
    name: CollectionName, body: OtherRule, who: Operator, house: AHouse, visit: AVisit
) -> ReembeddingShown:
    """Have it embedded by the model that the settings name now, as one batch. Asked again it goes on with
    what is left. A document is found by its old vectors until it has new ones."""
    there = await read(house, partial(store.collections.get, name=name))
    size = there.rule.size if body.size is None else body.size
    overlap = there.rule.overlap if body.overlap is None else body.overlap
    rule, model = checked_rule(size, overlap), model_now(house)
    _, changed = await house.retoma.write(
        lambda tx: store.collections.change(tx, name, model, rule, actor=who.name)
    )
    came = came_by(visit)
    follow = has_webhook(house)
    batch, jobs = await house.retoma.write(
        lambda tx: store.collections.reembed(tx, name, actor=who.name, follow=follow, **came)
    )
    return ReembeddingShown(
        collection=await shown(house, name), changed=changed, batch=batch, jobs=jobs
    )


@routes.delete("/api/embeddings/collections/{name}", status_code=204)
async def remove_collection(name: CollectionName, who: Operator, house: AHouse) -> Response:
    """With all its documents. Vectors that no other collection needs go an hour later."""
    gone = False
    while not gone:
        gone = await house.retoma.write(
            lambda tx: store.collections.remove_some(tx, name, actor=who.name)
        )
    return Response(status_code=204)


async def shown(house: House, name: str) -> CollectionShown:
    def look(tx: Transaction) -> tuple[Collection, Progress]:
        found = store.collections.get(tx, name)
        return found, store.collections.progress(tx, found)

    found, progress = await read(house, look)
    told = ProgressShown.model_validate(progress)
    return CollectionShown(**line_told(found).model_dump(), progress=told)


def line_told(found: Collection) -> CollectionLine:
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
