"""What a search goes through: a look at the vectors of a collection, and chunks that may be hits."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Protocol

from numpy.typing import NDArray

from retoma.apps.embeddings.store.rows import SQL
from retoma.db import Database, Transaction, moment
from retoma.db.rows import microseconds

Place = tuple[int, int]  # a document and the ordinal of a chunk


def stamp_of(told: int | datetime) -> int:
    """When a document was embedded: it is another one each time it is."""
    return microseconds(moment(told))


Stamp = Annotated[int, stamp_of]


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked for. `only`: documents that may be found; None: any."""

    collection: int
    query: NDArray[Any]
    most: int
    only: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk as it is now. `stamp`: when its document was embedded. `hash`: the same for the same text.
    `score`: how near it is to the question, once that is known."""

    document: int
    ordinal: int
    stamp: Stamp
    name: str
    start: int
    end: int
    text: str
    hash: str
    metadata: str
    score: float = 0.0

    @property
    def place(self) -> Place:
        return self.document, self.ordinal


@dataclass(frozen=True, slots=True)
class Nearest:
    """The nearest first. `searched`: among how many chunks; `left_out`: documents that another model
    embedded."""

    found: Sequence[Candidate]
    searched: int
    left_out: int


class VectorStore(Protocol):
    """Where vectors are compared. All of them have the same answer, but for what an index leaves out."""

    async def nearest(self, database: Database, look: Look) -> Nearest: ...


def read_chunks(tx: Transaction, places: Sequence[Place]) -> dict[Place, Candidate]:
    """What those chunks are now."""
    told = [{"document": document, "ordinal": ordinal} for document, ordinal in places]
    found = tx.all(SQL.hits_of, into=Candidate, rows=json.dumps(told)) if told else []
    return {each.place: each for each in found}
