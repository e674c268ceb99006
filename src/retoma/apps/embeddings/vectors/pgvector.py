"""Vectors in PostgreSQL by pgvector: an HNSW index for each collection and model, filled by whoever searches.

Memory and this give the same hits, but that an index may leave one out. A filter is exact: it reads the vectors
of the documents that it leaves, without the index. Until all of a collection is placed, memory answers.
"""

import json
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

import numpy as np

from retoma.apps.embeddings.model import Model
from retoma.apps.embeddings.store.rows import SQL
from retoma.apps.embeddings.vectors.candidates import (
    Look,
    Nearest,
    VectorStore,
    read_chunks,
)
from retoma.codec import digest
from retoma.db import Database, Statement, Transaction, adhoc
from retoma.engine.ports import Clock
from retoma.engine.rules.errors import IllegalMove
from retoma.words import Said, say

MOST_DIMS: Final = 2_000  # that an HNSW index of pgvector takes
PLACED: Final = 500  # chunks that one question places: about a second
DOCUMENTS: Final = 500
SEARCHED: Final = 60.0  # seconds that a count of chunks is good for
MOST_SEARCH: Final = 1_000  # of hnsw.ef_search

HERE: Final = adhoc(
    "SELECT 0, 0, 0, 0",
    """SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector'),
       EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector'),
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user),
       (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class
        WHERE oid = to_regclass('embeddings_near'))""",
)
EXTENSION: Final = adhoc("SELECT 1", "CREATE EXTENSION IF NOT EXISTS vector")
HAS_INDEX: Final = adhoc("SELECT 1", "SELECT 1 WHERE to_regclass(:name) IS NOT NULL")
UNPLACED: Final = adhoc(
    "SELECT 1",
    """SELECT id, chunks FROM embeddings_documents
       WHERE collection = :collection AND vector_edition <> edition
       ORDER BY id LIMIT :n FOR NO KEY UPDATE SKIP LOCKED""",
)
IS_BEHIND: Final = adhoc(
    "SELECT 1",
    """SELECT 1 FROM embeddings_documents
       WHERE collection = :collection AND vector_edition <> edition LIMIT 1""",
)
PLACE: Final = adhoc(
    "SELECT 1",
    """DELETE FROM embeddings_near
WHERE document IN (SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint));

INSERT INTO embeddings_near (document, ordinal, collection, model, near)
SELECT t.document, t.ordinal, :collection, :model, CAST(t.near AS real[])
FROM json_to_recordset(CAST(:rows AS json)) AS t(document bigint, ordinal integer, near text);

UPDATE embeddings_documents SET vector_edition = edition
WHERE id IN (SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint))
""",
)
COUNTS: Final = adhoc(
    "SELECT 1",
    """SELECT coalesce(sum(chunks) FILTER (WHERE placed), 0), count(*) FILTER (WHERE NOT placed)
       FROM (SELECT d.chunks, EXISTS (
                 SELECT FROM embeddings_near n WHERE n.document = d.id AND n.model = :model) AS placed
             FROM embeddings_documents d
             WHERE d.collection = :collection AND d.edition > 0) t""",
)
SETTINGS: Final = adhoc(
    "SELECT 1",
    """SELECT set_config('hnsw.ef_search', :search, true),
       set_config('hnsw.iterative_scan', 'strict_order', true)""",
)


@dataclass(frozen=True, slots=True)
class _Index:
    """Of one collection and model. What stands in its SQL are numbers and a digest of ours."""

    collection: int
    model: str
    dims: int

    @property
    def name(self) -> str:
        return f"embeddings_near_{self.collection}_{self.model}"

    @property
    def vector(self) -> str:
        return f"CAST(near AS vector({self.dims}))"

    @property
    def rows(self) -> str:
        return (
            f"embeddings_near WHERE collection = {self.collection} AND model = '{self.model}'"
        )


@cache
def _create(index: _Index) -> Statement:
    where = index.rows.removeprefix("embeddings_near ")
    return adhoc(
        "SELECT 1",
        f"CREATE INDEX IF NOT EXISTS {index.name} ON embeddings_near"
        f" USING hnsw (({index.vector}) vector_cosine_ops) {where}",
    )


@cache
def _nearest(index: _Index) -> Statement:
    return adhoc(
        "SELECT 1",
        f"SELECT document, ordinal, 1 - ({index.vector} <=> CAST(:query AS vector))"  # noqa: S608
        f" FROM {index.rows}"
        f" ORDER BY {index.vector} <=> CAST(:query AS vector) LIMIT :n",
    )


@cache
def _nearest_of(index: _Index) -> Statement:
    return adhoc(
        "SELECT 1",
        f"WITH chosen AS MATERIALIZED (SELECT document, ordinal, near FROM {index.rows}"  # noqa: S608
        " AND document IN"
        " (SELECT CAST(json_array_elements_text(CAST(:documents AS json)) AS bigint)))"
        f" SELECT document, ordinal, 1 - ({index.vector} <=> CAST(:query AS vector)) FROM chosen"
        f" ORDER BY {index.vector} <=> CAST(:query AS vector), document, ordinal LIMIT :n",
    )


class PgVectorStore:
    """One for a process. `must`: the settings say pgvector, so what is missing is an error."""

    def __init__(self, clock: Clock, model: Model, memory: VectorStore, *, must: bool) -> None:
        self._clock = clock
        self._model = model
        self._key = digest(str(model))[:16]
        self._memory = memory
        self._must = must
        self._ready: dict[int, bool] = {}  # collections, and whether they have an index
        self._counted: dict[int, tuple[float, int, int]] = {}

    async def nearest(self, database: Database, look: Look) -> Nearest:
        index = _Index(look.collection, self._key, self._model.dims)
        if not await self._has_index(database, index):
            return await self._memory.nearest(database, look)
        if await self._is_behind(database, look.collection):
            return await self._memory.nearest(database, look)

        def read(tx: Transaction) -> Nearest:
            return self._read(tx, index, look)

        return await database.read(read)

    # — what is there —

    async def _has_index(self, database: Database, index: _Index) -> bool:
        """Make it where that is allowed. Asked once for each collection."""
        if index.collection not in self._ready:
            why = await self._made(database, index)
            if why is not None and self._must:
                raise IllegalMove(why)
            self._ready[index.collection] = why is None
        return self._ready[index.collection]

    async def _made(self, database: Database, index: _Index) -> Said | None:
        """Why there is none; None: there is."""
        if database.dialect != "postgres":
            return say("RETOMA_EMBEDDINGS_STORE is pgvector, and the database is SQLite")
        if index.dims > MOST_DIMS:
            return say(
                "pgvector indexes vectors of {most} numbers at most, not {dims}",
                most=MOST_DIMS,
                dims=index.dims,
            )
        [(has, available, is_super, owns)] = await database.read(lambda tx: tx.all(HERE))
        if not has and not (self._must and available and is_super):
            return say(
                "the database has no pgvector: install it on the server and have a superuser run"
                " CREATE EXTENSION vector"
            )
        if await database.read(lambda tx: tx.one(HAS_INDEX, name=index.name)):
            return None
        if not owns:
            return say(
                "this role may not make the index {name}: search once as the owner of the tables",
                name=index.name,
            )

        def make(tx: Transaction) -> None:
            if not has:
                tx.run(EXTENSION)
            tx.run(_create(index))

        await database.write(make, verb="index_vectors")
        return None

    # — what is placed —

    async def _is_behind(self, database: Database, collection: int) -> bool:
        """Place some of what was embedded since; whether more is left."""

        def behind(tx: Transaction) -> bool:
            return tx.one(IS_BEHIND, collection=collection) is not None

        if not await database.read(behind):
            return False
        self._counted.pop(collection, None)
        await database.write(lambda tx: self._place(tx, collection), verb="place_vectors")
        return await database.read(behind)

    def _place(self, tx: Transaction, collection: int) -> None:
        documents, size = list[int](), 0
        for id_, chunks in tx.all(UNPLACED, collection=collection, n=DOCUMENTS):
            if documents and size + chunks > PLACED:
                break
            documents.append(int(id_))
            size += int(chunks)
        if not documents:  # another process is at them
            return
        told = json.dumps(documents)
        by = {
            "model": self._model.name,
            "version": self._model.version,
            "dims": self._model.dims,
        }
        rows = [
            {"document": document, "ordinal": ordinal, "near": _literal(vector)}
            for document, _, ordinal, vector in tx.all(SQL.vectors_of, documents=told, **by)
        ]
        told_rows = json.dumps(rows)
        tx.run(PLACE, documents=told, rows=told_rows, collection=collection, model=self._key)

    # — what is nearest —

    def _read(self, tx: Transaction, index: _Index, look: Look) -> Nearest:
        query = f"[{','.join(map(repr, look.query.tolist()))}]"
        if look.only is None:
            tx.all(SETTINGS, search=str(min(max(look.most, 100), MOST_SEARCH)))
            rows = tx.all(_nearest(index), query=query, n=look.most)
        else:
            only = json.dumps(sorted(look.only))
            rows = tx.all(_nearest_of(index), query=query, n=look.most, documents=only)
        places = [(int(document), int(ordinal)) for document, ordinal, _ in rows]
        known = read_chunks(tx, places)
        found = [
            replace(known[place], score=float(score))
            for place, (_, _, score) in zip(places, rows, strict=True)
            if place in known
        ]
        return Nearest(found, *self._counts(tx, look.collection))

    def _counts(self, tx: Transaction, collection: int) -> tuple[int, int]:
        now = self._clock.now()
        at, searched, left_out = self._counted.get(collection, (-SEARCHED, 0, 0))
        if now - at >= SEARCHED:
            [(searched, left_out)] = tx.all(COUNTS, collection=collection, model=self._key)
            self._counted[collection] = now, int(searched), int(left_out)
        return int(searched), int(left_out)


def _literal(vector: bytes) -> str:
    """As PostgreSQL reads an array of numbers."""
    return f"{{{','.join(map(repr, np.frombuffer(vector, dtype='<f4').tolist()))}}}"
