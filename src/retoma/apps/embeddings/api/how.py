"""What all the rooms of this API need."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Path

from retoma.apps.embeddings.model import Model
from retoma.apps.embeddings.providers import build_provider
from retoma.apps.embeddings.steps import model_of
from retoma.apps.tools import Tools
from retoma.db import Transaction
from retoma.web import House, router
from retoma.web.visit import Visit
from retoma.web.wire import LARGEST

T = TypeVar("T")
routes = router("embeddings")

CollectionName = Annotated[str, Path(max_length=100, description="The name of a collection.")]
DocumentId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a document.")]
JobId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a job.")]


def tools_of(house: House) -> Tools:
    tools: Tools = house.retoma.tools["embeddings"]
    return tools


def model_now(house: House) -> Model:
    """By which texts are embedded here."""
    return model_of(tools_of(house).one(build_provider))


def has_webhook(house: House) -> bool:
    """Whether the end of a submission is told."""
    return tools_of(house).settings.embeddings_webhook is not None


def came_by(visit: Visit) -> dict[str, Any]:
    """What a job that is submitted by this request goes on with."""
    return {"correlation": visit.correlation, "traceparent": visit.traceparent}


async def read(house: House, fn: Callable[[Transaction], T]) -> T:
    return await (await house.retoma.database()).read(fn)
