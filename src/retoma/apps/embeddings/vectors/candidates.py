"""What a search goes through: a look at the vectors of a collection, and chunks that may be hits."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from numpy.typing import NDArray

from retoma.apps.embeddings.store.rows import verb
from retoma.db import Database, Row, Transaction, moment
from retoma.db.rows import microseconds

HITS: Final = verb("hits_of")

Place = tuple[int, int]  # a document and the ordinal of a chunk


@dataclass(frozen=True, slots=True)
class Look:
    """What is looked for. `only`: documents that may be found; None: any."""

    collection: int
    query: NDArray[Any]
    most: int
    only: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk as it is now. `hash`: the same for the same text. `score`: how near it is to the question."""

    document: int
    name: str
    ordinal: int
    start: int
    end: int
    text: str
    hash: str
    metadata: str
    score: float

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


def read_chunks(tx: Transaction, places: Sequence[Place]) -> dict[Place, Row]:
    """What those chunks are now."""
    told = [{"document": document, "ordinal": ordinal} for document, ordinal in places]
    rows = tx.all(HITS, rows=json.dumps(told)) if told else []
    return {(int(row[0]), int(row[1])): row for row in rows}


def candidate_of(row: Row, score: float) -> Candidate:
    document, ordinal, _, name, start, end, text, hash_, metadata = row
    return Candidate(
        document=int(document),
        name=name,
        ordinal=int(ordinal),
        start=start,
        end=end,
        text=text,
        hash=hash_,
        metadata=metadata,
        score=score,
    )


def stamp_of(told: int | datetime) -> int:
    """When a document was embedded: it is another one each time it is."""
    return microseconds(moment(told))
