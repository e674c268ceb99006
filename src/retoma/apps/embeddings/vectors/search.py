"""Search in a collection: by meaning, by words, or by both together.

Both lists are merged by reciprocal rank fusion: a chunk counts 1 / (10 + its rank) in each list that has it, so
neither needs to know what a score of the other means. Filters are exact, chunks with the same text are one hit.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from retoma.apps.embeddings import store
from retoma.apps.embeddings.model import MetadataValue, metadata_pairs
from retoma.apps.embeddings.providers import InputType, ItemRefused, Provider, build_provider
from retoma.apps.embeddings.providers.provider import unfit
from retoma.apps.embeddings.questions import Questions
from retoma.apps.embeddings.steps import model_of
from retoma.apps.embeddings.store.rows import SQL
from retoma.apps.embeddings.vectors.candidates import (
    Candidate,
    Look,
    Nearest,
    Place,
    VectorStore,
    read_chunks,
)
from retoma.apps.embeddings.vectors.memory import AT_ONCE, MemoryStore
from retoma.apps.embeddings.vectors.pgvector import PgVectorStore
from retoma.apps.embeddings.vectors.spans import spans_of
from retoma.db import Database, Row, Transaction
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.settings import Store
from retoma.toolkit.tools import Tools
from retoma.words import say

ACTOR: Final = "search"
MOST: Final = 100  # hits
LONGEST: Final = 10_000  # characters of a question
MOST_DOCUMENTS: Final = 1_000  # in one filter
LAST: Final = "\U0010ffff"  # behind every name that begins so
FUSION: Final = 10  # with 60, what is in the middle of both lists beats the first of one
CANDIDATES: Final = 4  # for each hit that is asked for, in each of the two lists
LEAST_CANDIDATES: Final = 50
MOST_CANDIDATES: Final = 2_000
INDEXED: Final = 2_000  # chunks that one question indexes at most: some 200 ms


class Mode(StrEnum):
    """How a search is done."""

    HYBRID = "hybrid"  # by vectors and by words
    VECTOR = "vector"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is looked for, and where. `prefix`: only documents whose names begin so; `documents`: only
    these; `metadata`: only those that have all of these pairs; `least`: only what is at least as near."""

    collection: str
    text: str
    most: int = 10
    mode: Mode = Mode.VECTOR
    prefix: str = ""
    documents: Sequence[int] | None = None
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)
    least: float | None = None

    def __post_init__(self) -> None:
        if not self.text.strip() or len(self.text) > LONGEST:
            raise BadInput(say("a question has 1 to {most} characters", most=LONGEST))
        if not 1 <= self.most <= MOST:
            raise BadInput(say("a search gives 1 to {most} hits", most=MOST))
        if self.documents is not None and len(self.documents) > MOST_DOCUMENTS:
            raise BadInput(say("a search names {most} documents at most", most=MOST_DOCUMENTS))
        metadata_pairs(self.metadata)


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk, from where to where it stands in its document, and where it says words of the question.

    `score`: how near it is; `duplicates`: other chunks that were found and say the very same."""

    document: int
    name: str
    ordinal: int
    start: int
    end: int
    text: str
    score: float
    spans: tuple[tuple[int, int], ...]
    duplicates: int
    metadata: Mapping[str, MetadataValue]


@dataclass(frozen=True, slots=True)
class Found:
    """The best first. `searched`: in how many chunks; `left_out`: documents that another model
    embedded, and that are not searched before they are embedded anew; `unindexed`: documents that are
    found by meaning alone, until their words are indexed."""

    hits: Sequence[Hit]
    searched: int
    left_out: int
    unindexed: int = 0


class Searcher:
    """One for a process."""

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
        clock, model = tools.retoma.clock, model_of(self._provider)
        held = memory or tools.settings.embeddings_memory
        self._store: VectorStore = MemoryStore(clock, model, held, at_once)
        wanted = tools.settings.embeddings_store
        if wanted is not Store.MEMORY:
            must = wanted is Store.PGVECTOR
            self._store = PgVectorStore(clock, model, self._store, must=must)

    async def find(self, question: Question, *, actor: str = ACTOR) -> Found:
        """`actor`: in whose name it is paid for, where a question costs money."""
        database = await self._retoma.database()
        collection = await self._collection(database, question.collection)
        query = await self._vector(question.text, actor)
        hybrid = question.mode is Mode.HYBRID
        unindexed = await self._indexed(database, collection) if hybrid else 0
        only = await database.read(lambda tx: _only(tx, collection, question))
        most = max(LEAST_CANDIDATES, CANDIDATES * question.most)
        while True:
            look = Look(collection, query, most, only)
            nearest = await self._store.nearest(database, look)
            ranked = [nearest.found]
            if hybrid:
                ranked.append(await self._by_words(database, look, question, nearest))
            hits = _hits(ranked, question)
            whole = all(len(each) < most for each in ranked) or _is_far(nearest, question)
            if len(hits) >= question.most or whole or most >= MOST_CANDIDATES:
                return Found(
                    hits[: question.most], nearest.searched, nearest.left_out, unindexed
                )
            most = min(4 * most, MOST_CANDIDATES)  # many say the same

    # — what is asked —

    async def _collection(self, database: Database, name: str) -> int:
        row = await database.read(lambda tx: tx.one(SQL.searched_collection, name=name))
        if row is None:
            raise NotFound(say("there is no collection {name!r}", name=name))
        ours = (self._provider.model, self._provider.version, self._provider.dims)
        id_, *theirs = row
        if tuple(theirs) != ours:
            raise IllegalMove(
                say(
                    "collection {name}: its texts are embedded by {theirs}, questions here by {ours}:"
                    " embed it anew, or set its model",
                    name=name,
                    theirs=theirs[0],
                    ours=ours[0],
                )
            )
        return int(id_)

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

    # — by words —

    async def _indexed(self, database: Database, collection: int) -> int:
        """Index what was embedded since; how many documents are still left."""
        done = 0
        while done < INDEXED:
            if not await database.read(lambda tx: store.keywords.unindexed(tx, collection)):
                return 0
            some = await self._retoma.write(
                lambda tx: store.keywords.index_some(tx, collection)
            )
            if not some:  # another process is at the rest
                break
            done += some
        return await database.read(lambda tx: store.keywords.unindexed(tx, collection))

    async def _by_words(
        self, database: Database, look: Look, question: Question, nearest: Nearest
    ) -> list[Candidate]:
        """Chunks that say words of the question, the best first, each with how near it is."""
        model = model_of(self._provider)

        def read(tx: Transaction) -> tuple[list[Place], dict[Place, Candidate], list[Row]]:
            only = None if look.only is None else sorted(look.only)
            places = store.keywords.find(tx, look.collection, question.text, look.most, only)
            known = {each.place for each in nearest.found}
            other = [each for each in places if each not in known]
            rows = [{"document": document, "ordinal": ordinal} for document, ordinal in other]
            told = {"model": model.name, "version": model.version, "dims": model.dims}
            vectors = (
                tx.all(SQL.vectors_of_chunks, rows=json.dumps(rows), **told) if rows else []
            )
            return places, read_chunks(tx, other), vectors

        places, known, vectors = await database.read(read)
        found = {each.place: each for each in nearest.found}
        for document, ordinal, vector in vectors:
            place = int(document), int(ordinal)
            if place in known:
                score = float(np.frombuffer(vector, dtype="<f4") @ look.query)
                found[place] = replace(known[place], score=score)
        return [found[place] for place in places if place in found]


def _is_far(nearest: Nearest, question: Question) -> bool:
    """Whether all that is near enough was found."""
    least, found = question.least, nearest.found
    return least is not None and bool(found) and found[-1].score < least


def _only(tx: Transaction, collection: int, question: Question) -> frozenset[int] | None:
    """The documents that were asked for; None: any."""
    only = None if question.documents is None else frozenset(question.documents)
    if question.prefix:
        asked = {"first": question.prefix, "last": f"{question.prefix}{LAST}"}
        only = _both(
            only, tx.all(SQL.names_beginning, into=int, collection=collection, **asked)
        )
    if question.metadata:
        pairs = metadata_pairs(question.metadata)
        only = _both(only, store.keywords.documents_with(tx, collection, pairs))
    return only


def _both(only: frozenset[int] | None, other: Any) -> frozenset[int]:
    found = frozenset(other)
    return found if only is None else only & found


def _hits(ranked: Sequence[Sequence[Candidate]], question: Question) -> list[Hit]:
    """The lists as one, each text once: of chunks that say the same, the best."""
    best: dict[str, Candidate] = {}
    others: dict[str, set[Place]] = {}
    for each in _fused(ranked):
        if question.least is not None and each.score < question.least:
            continue
        best.setdefault(each.hash, each)
        others.setdefault(each.hash, set()).add(each.place)
    return [_hit(each, len(others[hash_]) - 1, question) for hash_, each in best.items()]


def _fused(ranked: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """By reciprocal rank fusion; of equal sums, the nearer first. One list stays as it is."""
    if len(ranked) == 1:
        return [*ranked[0]]
    sums: dict[Place, float] = {}
    known: dict[Place, Candidate] = {}
    for found in ranked:
        for rank, each in enumerate(found, 1):
            sums[each.place] = sums.get(each.place, 0.0) + 1 / (FUSION + rank)
            known[each.place] = each
    order = sorted(known, key=lambda place: (-sums[place], -known[place].score, place))
    return [known[place] for place in order]


def _hit(each: Candidate, duplicates: int, question: Question) -> Hit:
    return Hit(
        document=each.document,
        name=each.name,
        ordinal=each.ordinal,
        start=each.start,
        end=each.end,
        text=each.text,
        score=round(each.score, 4),
        spans=spans_of(each.text, question.text),
        duplicates=duplicates,
        metadata=json.loads(each.metadata),
    )
