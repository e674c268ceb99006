"""How the verbs of this application read the database, page lists, and create a row only once."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from retoma import db
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import Asked
from retoma.engine.writing.once import Answered
from retoma.library import Retoma

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows of a list. `next`: the id after which the next page begins; None: there is none."""

    items: Sequence[T]
    next: int | None


def cut_page(rows: Sequence[T], limit: int, id_of: Callable[[T], int]) -> Page[T]:
    """Make a page of `limit` rows; one row more says that another page follows."""
    items = rows[:limit]
    return Page(items, id_of(items[-1]) if len(rows) > limit else None)


async def read(retoma: Retoma, look: Callable[[db.Transaction], T]) -> T:
    return await (await retoma.database()).read(look)


async def create_once(
    retoma: Retoma, once: Asked | None, create: Callable[[Transaction], int]
) -> tuple[int, bool]:
    """Create a row; return its id, and whether this call created it. `once`: the same request creates
    the row only the first time."""
    if once is None:
        return await retoma.write(create), True
    try:
        return await retoma.write_once(once, create, lambda made: {"id": made}), True
    except Answered as before:
        return int(json.loads(before.answer)["id"]), False
