"""Vectors in memory: freshened before every answer, and read through where memory has no room for them.

What was embedded since the last look is read by its time; every minute the whole list is compared, so that
a document whose commit came late is found as well, and one that is gone is let go. Until then a chunk that
is no longer there costs nobody a wrong answer: every hit is read from the database before it is told. A
collection that memory has no room for is read through for each question, a part at a time: the same answer,
later.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final, NamedTuple

from retoma.apps.embeddings.model import Model
from retoma.apps.embeddings.store.rows import SQL
from retoma.apps.embeddings.vectors.candidates import (
    Candidate,
    Look,
    Nearest,
    Place,
    Stamp,
    read_chunks,
    stamp_of,
)
from retoma.apps.embeddings.vectors.matrix import Matrix, Near, Rows
from retoma.db import Database, Row, Transaction, moment
from retoma.db.rows import EPOCH
from retoma.engine.ports import Clock

MARGIN: Final = timedelta(seconds=2)  # between the time a document has and its commit
WHOLE: Final = 60.0  # seconds between two looks at the whole list
AT_ONCE: Final = 2_000  # chunks in one reading: some megabytes
LOOKS: Final = 4  # at what is nearest, where hits turn out to be gone


@dataclass(slots=True)
class _Kept:
    """The matrix of a collection, and how fresh it is."""

    matrix: Matrix
    one: asyncio.Lock = field(default_factory=asyncio.Lock)
    seen: int = 0
    whole_at: float | None = None


class MemoryStore:
    """One for a process. What it keeps is bounded: the collection asked for least lately goes."""

    def __init__(self, clock: Clock, model: Model, memory: int, at_once: int = AT_ONCE) -> None:
        self._clock = clock
        self._model = model
        self._memory = memory
        self._at_once = at_once
        self._kept: OrderedDict[int, _Kept] = OrderedDict()

    async def nearest(self, database: Database, look: Look) -> Nearest:
        kept = self._of(look.collection)
        async with kept.one:
            fits = await self._freshen(database, look.collection, kept)
        if not fits:
            return await self._read_through(database, look)
        found = await self._found(database, kept, look)
        return Nearest(found, kept.matrix.chunks, kept.matrix.empty_documents)

    def _of(self, collection: int) -> _Kept:
        if collection not in self._kept:
            self._kept[collection] = _Kept(Matrix(self._model.dims))
        self._kept.move_to_end(collection)
        return self._kept[collection]

    async def _freshen(self, database: Database, collection: int, kept: _Kept) -> bool:
        """Whether there is room for it; where there is none, nothing of it is kept."""
        now = self._clock.now()
        whole = kept.whole_at is None or now - kept.whole_at >= WHOLE
        rows = await database.read(lambda tx: _listed(tx, collection, kept, whole))
        listed = {document: (stamp, chunks) for document, stamp, chunks in rows}
        matrix = kept.matrix
        if whole:
            for document in [each for each in matrix if each not in listed]:
                matrix.drop(document)
        changed = [
            (document, stamp, chunks)
            for document, (stamp, chunks) in listed.items()
            if matrix.stamp(document) != stamp
        ]
        coming = sum(chunks for _, _, chunks in changed)
        if not self._has_room(collection, matrix.chunks + coming):
            self._kept.pop(collection, None)
            return False
        matrix.make_room(coming)
        for group in _groups(changed, self._at_once):
            await self._load(database, matrix, group)
        kept.seen = max([*(stamp for stamp, _ in listed.values()), kept.seen])
        if whole:
            kept.whole_at = now
        return True

    def _has_room(self, collection: int, chunks: int) -> bool:
        """For so many chunks, at the cost of other collections; never more than may be used."""
        row = 4 * self._model.dims
        if chunks * row > self._memory:
            return False
        while chunks + self._others(collection) > self._memory // row:
            self._kept.pop(next(each for each in self._kept if each != collection))
        return True

    def _others(self, collection: int) -> int:
        return sum(k.matrix.chunks for each, k in self._kept.items() if each != collection)

    async def _load(
        self, database: Database, matrix: Matrix, group: Sequence[tuple[int, int]]
    ) -> None:
        told = {
            "documents": json.dumps([document for document, _ in group]),
            "model": self._model.name,
            "version": self._model.version,
            "dims": self._model.dims,
        }
        rows = await database.read(lambda tx: tx.all(SQL.vectors_of, **told))
        found: dict[int, list[Row]] = {}
        for document, *vector in rows:
            found.setdefault(int(document), []).append(tuple(vector))
        for document, stamp in group:
            of = found.get(document)
            if of is None:
                matrix.add(document, stamp, (), b"")
                continue
            at, ordinals, vectors = zip(*of, strict=True)
            matrix.add(document, stamp_of(at[0]), ordinals, b"".join(vectors))

    async def _found(self, database: Database, kept: _Kept, look: Look) -> list[Candidate]:
        """Each as it is now; what has changed or gone since is dropped, and looked for again."""
        found = list[Candidate]()
        for _ in range(LOOKS):
            near, known = await database.read(_Reading(look, kept.matrix.rows()))
            same = [each for each in near if _is_same(each, known)]
            found = [replace(known[each.place], score=each.score) for each in same]
            if len(same) == len(near):
                break
            async with kept.one:
                for each in set(near) - set(same):
                    kept.matrix.drop(each.document)
                await self._freshen(database, look.collection, kept)
        return found

    async def _read_through(self, database: Database, look: Look) -> Nearest:
        listed = await database.read(
            lambda tx: tx.all(SQL.embedded_documents, into=_Listed, collection=look.collection)
        )
        near, searched, left_out = list[Near](), 0, 0
        for group in _groups(listed, self._at_once):
            part = Matrix(self._model.dims)
            await self._load(database, part, group)
            near += part.rows().nearest(look.query, look.most, look.only)
            near = sorted(near, key=lambda each: -each.score)[: look.most]
            searched += part.chunks
            left_out += part.empty_documents
        known = await database.read(lambda tx: read_chunks(tx, [each.place for each in near]))
        found = [
            replace(known[each.place], score=each.score)
            for each in near
            if _is_same(each, known)
        ]
        return Nearest(found, searched, left_out)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is nearest, and what it says: in the thread that reads, where nobody waits for the product."""

    look: Look
    rows: Rows

    def __call__(self, tx: Transaction) -> tuple[list[Near], dict[Place, Candidate]]:
        near = self.rows.nearest(self.look.query, self.look.most, self.look.only)
        return near, read_chunks(tx, [each.place for each in near])


class _Listed(NamedTuple):
    document: int
    stamp: Stamp
    chunks: int


def _listed(tx: Transaction, collection: int, kept: _Kept, whole: bool) -> list[_Listed]:
    if whole:
        return tx.all(SQL.embedded_documents, into=_Listed, collection=collection)
    since = max(EPOCH, moment(kept.seen) - MARGIN)
    return tx.all(SQL.embedded_since, into=_Listed, collection=collection, since=since)


def _groups(
    changed: Sequence[tuple[int, int, int]], at_once: int
) -> Iterator[list[tuple[int, int]]]:
    group, size = list[tuple[int, int]](), 0
    for document, stamp, chunks in changed:
        if group and size + chunks > at_once:
            yield group
            group, size = [], 0
        group.append((document, stamp))
        size += chunks
    if group:
        yield group


def _is_same(near: Near, known: dict[Place, Candidate]) -> bool:
    chunk = known.get(near.place)
    return chunk is not None and near.stamp == chunk.stamp
