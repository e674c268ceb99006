"""Search in a collection: its vectors are in memory, and freshened before every answer.

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
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from retoma.apps.embeddings.providers import InputType, ItemRefused, Provider, build_provider
from retoma.apps.embeddings.providers.provider import unfit
from retoma.apps.embeddings.questions import Questions
from retoma.apps.embeddings.vectors.matrix import Matrix, Near, Rows
from retoma.apps.embeddings.vectors.spans import spans_of
from retoma.apps.tools import Tools
from retoma.db import Database, Row, Statement, Transaction, moment, statement
from retoma.engine.errors import BadInput, IllegalMove, NotFound
from retoma.words import say

ACTOR: Final = "search"
MOST: Final = 100  # hits
LONGEST: Final = 10_000  # characters of a question
MOST_DOCUMENTS: Final = 1_000  # in one filter
MARGIN: Final = timedelta(seconds=2)  # between the time a document has and its commit
WHOLE: Final = 60.0  # seconds between two looks at the whole list
AT_ONCE: Final = 2_000  # chunks in one reading: some megabytes
LOOKS: Final = 4  # at what is nearest, where hits turn out to be gone
LAST: Final = "\U0010ffff"  # behind every name that begins so
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)


def _verb(name: str) -> Statement:
    return statement("retoma.apps.embeddings.sql", name)


COLLECTION: Final = _verb("searched_collection")
DOCUMENTS: Final = _verb("embedded_documents")
SINCE: Final = _verb("embedded_since")
VECTORS: Final = _verb("vectors_of")
HITS: Final = _verb("hits_of")
NAMES: Final = _verb("names_beginning")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is looked for, and where. `prefix`: only documents whose names begin so; `documents`: only
    these; `least`: only what is at least as near."""

    collection: str
    text: str
    most: int = 10
    prefix: str = ""
    documents: Sequence[int] | None = None
    least: float | None = None

    def __post_init__(self) -> None:
        if not self.text.strip() or len(self.text) > LONGEST:
            raise BadInput(say("a question has 1 to {most} characters", most=LONGEST))
        if not 1 <= self.most <= MOST:
            raise BadInput(say("a search gives 1 to {most} hits", most=MOST))
        if self.documents is not None and len(self.documents) > MOST_DOCUMENTS:
            raise BadInput(say("a search names {most} documents at most", most=MOST_DOCUMENTS))


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk, from where to where it stands in its document, and where it says words of the question."""

    document: int
    name: str
    ordinal: int
    start: int
    end: int
    text: str
    score: float
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The nearest first. `searched`: in how many chunks; `left_out`: documents that another model
    embedded, and that are not searched before they are embedded anew."""

    hits: Sequence[Hit]
    searched: int
    left_out: int


@dataclass(slots=True)
class _Kept:
    """The matrix of a collection, and how fresh it is."""

    matrix: Matrix
    one: asyncio.Lock = field(default_factory=asyncio.Lock)
    seen: int = 0
    whole_at: float | None = None


class Searcher:
    """One for a process. What it keeps in memory is bounded: the collection asked for least lately goes."""

    def __init__(
        self,
        tools: Tools,
        provider: Provider | None = None,
        memory: int | None = None,
        at_once: int = AT_ONCE,
        questions: Questions | None = None,
    ) -> None:
        self._retoma = tools.retoma
        self._provider = provider or tools.one(build_provider)
        self._questions = questions or tools.one(Questions)
        self._memory = memory or tools.settings.embeddings_memory
        self._at_once = at_once
        self._kept: OrderedDict[int, _Kept] = OrderedDict()

    async def find(self, question: Question, *, actor: str = ACTOR) -> Found:
        """`actor`: in whose name it is paid for, where a question costs money."""
        database = await self._retoma.database()
        collection = await self._collection(database, question.collection)
        query = await self._vector(question.text, actor)
        kept = self._of(collection)
        async with kept.one:
            fits = await self._freshen(database, collection, kept)
        if not fits:
            return await self._read_through(database, collection, question, query)
        hits = await self._hits(database, collection, kept, question, query)
        return Found(hits, kept.matrix.chunks, kept.matrix.empty_documents)

    # — what is asked —

    async def _collection(self, database: Database, name: str) -> int:
        row = await database.read(lambda tx: tx.one(COLLECTION, name=name))
        if row is None:
            raise NotFound(say("there is no collection {name!r}", name=name))
        ours = (self._provider.model, self._provider.version, self._provider.dims)
        if tuple(row[1:]) != ours:
            raise IllegalMove(
                say(
                    "collection {name}: its texts are embedded by {theirs}, questions here by {ours}:"
                    " embed it anew, or set its model",
                    name=name,
                    theirs=row[1],
                    ours=ours[0],
                )
            )
        return int(row[0])

    async def _vector(self, text: str, actor: str) -> NDArray[Any]:
        item = unfit(text, LONGEST) or await self._embedded(text, actor)
        if isinstance(item, ItemRefused):
            raise BadInput(say("this cannot be searched for: {why}", why=item.message))
        return np.frombuffer(item, dtype="<f4")

    async def _embedded(self, text: str, actor: str) -> bytes | ItemRefused:
        if self._provider.paid:
            return await self._questions.vector_of(text, actor=actor)
        [item] = (await self._provider.embed([text], InputType.QUERY)).items
        return item

    # — what is kept —

    def _of(self, collection: int) -> _Kept:
        if collection not in self._kept:
            self._kept[collection] = _Kept(Matrix(self._provider.dims))
        self._kept.move_to_end(collection)
        return self._kept[collection]

    async def _freshen(self, database: Database, collection: int, kept: _Kept) -> bool:
        """Whether there is room for it; where there is none, nothing of it is kept."""
        now = self._retoma.clock.now()
        whole = kept.whole_at is None or now - kept.whole_at >= WHOLE
        rows = await database.read(lambda tx: _listed(tx, collection, kept, whole))
        listed = {int(row[0]): (_stamp(row[1]), int(row[2])) for row in rows}
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
        row = 4 * self._provider.dims
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
            "model": self._provider.model,
            "version": self._provider.version,
            "dims": self._provider.dims,
        }
        rows = await database.read(lambda tx: tx.all(VECTORS, **told))
        found: dict[int, list[Row]] = {}
        for row in rows:
            found.setdefault(int(row[0]), []).append(row)
        for document, stamp in group:
            of = found.get(document)
            if of is None:
                matrix.add(document, stamp, (), b"")
                continue
            vectors = b"".join(row[3] for row in of)
            matrix.add(document, _stamp(of[0][1]), [row[2] for row in of], vectors)

    # — what is told —

    async def _hits(
        self,
        database: Database,
        collection: int,
        kept: _Kept,
        question: Question,
        query: NDArray[Any],
    ) -> list[Hit]:
        """Each as it is now; what has changed or gone since is dropped, and looked for again."""
        hits = list[Hit]()
        for _ in range(LOOKS):
            look = _Look(collection, question, query, kept.matrix.rows())
            near, known = await database.read(look)
            same = [each for each in near if _is_same(each, known)]
            hits = [_hit(each, known[each.document, each.ordinal], question) for each in same]
            if len(same) == len(near):
                break
            async with kept.one:
                for each in set(near) - set(same):
                    kept.matrix.drop(each.document)
                await self._freshen(database, collection, kept)
        return hits

    async def _read_through(
        self, database: Database, collection: int, question: Question, query: NDArray[Any]
    ) -> Found:
        rows = await database.read(lambda tx: tx.all(DOCUMENTS, collection=collection))
        only = await database.read(lambda tx: _only(tx, collection, question))
        listed = [(int(row[0]), _stamp(row[1]), int(row[2])) for row in rows]
        near, searched, left_out = list[Near](), 0, 0
        for group in _groups(listed, self._at_once):
            part = Matrix(self._provider.dims)
            await self._load(database, part, group)
            near += part.rows().nearest(query, question.most, only)
            near = sorted(near, key=lambda each: -each.score)[: question.most]
            searched += part.chunks
            left_out += part.empty_documents
        near = _near_enough(near, question)
        known = await database.read(lambda tx: _said(tx, near))
        hits = [
            _hit(each, known[each.document, each.ordinal], question)
            for each in near
            if _is_same(each, known)
        ]
        return Found(hits, searched, left_out)


@dataclass(frozen=True, slots=True)
class _Look:
    """What is nearest, and what it says: in the thread that reads, where nobody waits for the product."""

    collection: int
    question: Question
    query: NDArray[Any]
    rows: Rows

    def __call__(self, tx: Transaction) -> tuple[list[Near], dict[tuple[int, int], Row]]:
        only = _only(tx, self.collection, self.question)
        near = self.rows.nearest(self.query, self.question.most, only)
        near = _near_enough(near, self.question)
        return near, _said(tx, near)


def _near_enough(near: list[Near], question: Question) -> list[Near]:
    least = question.least
    return near if least is None else [each for each in near if each.score >= least]


def _said(tx: Transaction, near: Sequence[Near]) -> dict[tuple[int, int], Row]:
    """What those chunks are now."""
    told = [{"document": each.document, "ordinal": each.ordinal} for each in near]
    rows = tx.all(HITS, rows=json.dumps(told)) if told else []
    return {(int(row[0]), int(row[1])): row for row in rows}


def _only(tx: Transaction, collection: int, question: Question) -> set[int] | None:
    """The documents that were asked for; None: any."""
    told, first = question.documents, question.prefix
    only = None if told is None else set(told)
    if not first:
        return only
    rows = tx.all(NAMES, collection=collection, first=first, last=f"{first}{LAST}")
    named = {int(row[0]) for row in rows}
    return named if only is None else named & only


def _listed(tx: Transaction, collection: int, kept: _Kept, whole: bool) -> list[Row]:
    if whole:
        return tx.all(DOCUMENTS, collection=collection)
    since = max(EPOCH, EPOCH + kept.seen * MICROSECOND - MARGIN)
    return tx.all(SINCE, collection=collection, since=since)


def _stamp(told: Any) -> int:
    """When a document was embedded: it is another one each time it is."""
    at = moment(told)
    assert at is not None  # noqa: S101 — a document with an edition has it
    return (at - EPOCH) // MICROSECOND


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


def _is_same(near: Near, known: dict[tuple[int, int], Row]) -> bool:
    row = known.get((near.document, near.ordinal))
    return row is not None and near.stamp == _stamp(row[2])


def _hit(near: Near, row: Row, question: Question) -> Hit:
    name, start, end, text = row[3:]
    return Hit(
        document=near.document,
        name=name,
        ordinal=near.ordinal,
        start=start,
        end=end,
        text=text,
        score=round(near.score, 4),
        spans=spans_of(text, question.text),
    )
