"""The vectors of one collection in memory, a row for each chunk; which of them are nearest is one product.

100,000 chunks of 384 numbers are 154 MB. A document's rows stand together; those of one that has changed
or gone are passed over, and the room is had back once they are a third of all.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LEAST_ROWS: Final = 1_024
NOWHERE: Final = -2.0  # farther than anything: what has length one is nearer than -1


@dataclass(frozen=True, slots=True)
class Near:
    """A chunk, as its document was at that stamp, and how near it is: 1 is the same, 0 has nothing in
    common."""

    document: int
    stamp: int
    ordinal: int
    score: float

    @property
    def place(self) -> tuple[int, int]:
        return self.document, self.ordinal


@dataclass(frozen=True, slots=True)
class Rows:
    """What is there at an instant. May be read in another thread while more is added behind."""

    vectors: NDArray[Any]
    documents: NDArray[Any]
    stamps: NDArray[Any]
    ordinals: NDArray[Any]
    alive: NDArray[Any]

    @classmethod
    def empty(cls, rows: int, dims: int) -> "Rows":
        return cls(
            np.empty((rows, dims), dtype="<f4"),
            np.empty(rows, dtype=np.int64),
            np.empty(rows, dtype=np.int64),
            np.empty(rows, dtype=np.int32),
            np.empty(rows, dtype=bool),
        )

    def part(self, of: Any) -> "Rows":
        return Rows(
            self.vectors[of],
            self.documents[of],
            self.stamps[of],
            self.ordinals[of],
            self.alive[of],
        )

    def put(self, at: slice, other: "Rows") -> None:
        self.vectors[at] = other.vectors
        self.documents[at] = other.documents
        self.stamps[at] = other.stamps
        self.ordinals[at] = other.ordinals
        self.alive[at] = other.alive

    def nearest(
        self, query: NDArray[Any], most: int, only: Collection[int] | None = None
    ) -> list[Near]:
        """The nearest first; of equally near ones, the one that came first."""
        scores = self.vectors @ query
        scores[~self.alive] = NOWHERE
        if only is not None:
            wanted = np.fromiter(only, dtype=np.int64, count=len(only))
            scores[~np.isin(self.documents, wanted)] = NOWHERE
        best = np.flatnonzero(scores > NOWHERE)
        if len(best) > most:
            least = np.partition(scores, len(scores) - most)[len(scores) - most]
            best = np.flatnonzero(scores >= least)
        order = best[np.lexsort((best, -scores[best]))][:most]
        return [
            Near(
                int(self.documents[at]),
                int(self.stamps[at]),
                int(self.ordinals[at]),
                float(scores[at]),
            )
            for at in order
        ]


class Matrix:
    """Changed by one task at a time."""

    def __init__(self, dims: int) -> None:
        self.dims = dims
        self._rows = Rows.empty(0, dims)
        self._used = 0
        self._dead = 0
        self._empty = 0
        self._documents: dict[int, tuple[int, slice]] = {}

    def __iter__(self) -> Iterator[int]:
        return iter(self._documents)

    @property
    def chunks(self) -> int:
        return self._used - self._dead

    @property
    def empty_documents(self) -> int:
        """Those that are there and of which no chunk is: another model embedded them."""
        return self._empty

    def stamp(self, document: int) -> int | None:
        """Since when it is as it is here."""
        found = self._documents.get(document)
        return None if found is None else found[0]

    def add(self, document: int, stamp: int, ordinals: Sequence[int], vectors: bytes) -> None:
        """In the place of what was known of this document. `vectors`: one behind the other."""
        self.drop(document)
        at = slice(self._used, self._used + len(ordinals))
        self.make_room(len(ordinals))
        table = np.frombuffer(vectors, dtype="<f4").reshape(len(ordinals), self.dims)
        self._rows.vectors[at] = table
        self._rows.documents[at] = document
        self._rows.stamps[at] = stamp
        self._rows.ordinals[at] = np.array(ordinals, dtype=np.int32)
        self._rows.alive[at] = True
        self._used = at.stop
        self._empty += not ordinals
        self._documents[document] = stamp, at

    def drop(self, document: int) -> None:
        found = self._documents.pop(document, None)
        if found is None:
            return
        at = found[1]
        self._rows.alive[at] = False
        self._dead += at.stop - at.start
        self._empty -= at.start == at.stop
        if self._dead > LEAST_ROWS and self._dead * 3 > self._used:
            self._move(self._used - self._dead)

    def make_room(self, rows: int) -> None:
        """For so many more, and a little for those to come."""
        if self._used + rows > len(self._rows.alive):
            self._move(max(LEAST_ROWS, (self.chunks + rows) * 9 // 8))

    def rows(self) -> Rows:
        return self._rows.part(slice(0, self._used))

    def _move(self, room: int) -> None:
        """Into other arrays, without those that are dead; who reads the old ones may go on with them."""
        alive = np.flatnonzero(self._rows.alive[: self._used])
        moved = Rows.empty(max(room, len(alive)), self.dims)
        moved.put(slice(0, len(alive)), self._rows.part(alive))
        places = np.cumsum(self._rows.alive[: self._used])
        for document, (stamp, at) in self._documents.items():
            end = int(places[at.stop - 1]) if at.stop > at.start else 0
            begin = end - (at.stop - at.start)
            self._documents[document] = stamp, slice(begin, end)
        self._rows, self._used, self._dead = moved, len(alive), 0
