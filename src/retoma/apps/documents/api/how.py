"""What all the rooms of this API need."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from fastapi import Path

from retoma.db import Transaction
from retoma.web import House, router
from retoma.web.wire import LARGEST

T = TypeVar("T")
routes = router("documents")

ProjectId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a project.")]
ExecutionId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of an execution.")]
DocumentId = Annotated[int, Path(ge=1, le=LARGEST, description="The number of a document.")]


def time_told(at: Any) -> datetime | None:
    """A time, as either database gives it: SQLite's tables as a number, its views as text."""
    if at is None or isinstance(at, datetime):
        return at
    if isinstance(at, int):
        return datetime.fromtimestamp(at / 1e6, UTC)
    return datetime.fromisoformat(at).replace(tzinfo=UTC)


async def read(house: House, fn: Callable[[Transaction], T]) -> T:
    return await (await house.retoma.database()).read(fn)
