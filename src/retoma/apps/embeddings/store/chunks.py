"""Chunks and their vectors: cut once, embedded once for their content, by one claim at a time.

A text that several want is taken up by one of them: whoever else wants it waits for its vector, or for the
end of that claim. Nobody waits while holding anything, so nobody waits for ever.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retoma.apps.embeddings.chunks import Chunk
from retoma.apps.embeddings.model import Model
from retoma.apps.embeddings.store.rows import verb
from retoma.db import Transaction as Reading
from retoma.engine.job import Held
from retoma.engine.transaction import Transaction

ADD_CHUNKS = verb("add_chunks")
FIND_MISSING = verb("find_missing")
FINISH_DOCUMENT = verb("finish_document")
KEEP_VECTORS = verb("keep_vectors")
LOCK_DOCUMENT = verb("lock_document")
REMOVE_EDITIONS = verb("remove_editions")
TAKE_FLIGHTS = verb("take_flights")
TIDY_FLIGHTS = verb("tidy_flights")
TIDY_VECTORS = verb("tidy_vectors")

BITE = 500  # vectors deleted in one transaction


@dataclass(frozen=True, slots=True)
class Edition:
    """A document, and as which edition of it its chunks are kept."""

    document: int
    number: int


def cut(tx: Transaction, of: Edition, chunks: Sequence[tuple[Chunk, str]]) -> int | None:
    """Write down its chunks, each with its hash; how many. None where it was deleted."""
    if tx.one(LOCK_DOCUMENT, document=of.document) is None:
        return None
    rows = [
        [chunk.ordinal, chunk.start, chunk.end, chunk.text, hash_] for chunk, hash_ in chunks
    ]
    tx.run(ADD_CHUNKS, document=of.document, edition=of.number, rows=json.dumps(rows))
    return len(rows)


def missing(tx: Reading | Transaction, of: Edition, n: int) -> dict[str, str]:
    """Texts of it that have no vector yet, some of them, by their hashes."""
    return dict(tx.all(FIND_MISSING, document=of.document, edition=of.number, n=n))


def take(tx: Reading | Transaction, held: Held, hashes: Sequence[str]) -> frozenset[str]:
    """Take these up, where nobody has them in hand or has made them; those that are this claim's."""
    rows = tx.all(
        TAKE_FLIGHTS, job=held.job, epoch=held.epoch, hashes=json.dumps(sorted(hashes))
    )
    return frozenset(hash_ for (hash_,) in rows)


def keep(tx: Transaction, held: Held, model: Model, vectors: Mapping[str, bytes]) -> int:
    """Keep what was made, each once for its content, and let go of what was taken up; how many."""
    hashes = sorted(vectors)
    tx.run(
        KEEP_VECTORS,
        hashes=json.dumps(hashes),
        vectors=b"".join(vectors[hash_] for hash_ in hashes),
        model=model.name,
        version=model.version,
        dims=model.dims,
        job=held.job,
        epoch=held.epoch,
    )
    return len(hashes)


def finish(tx: Transaction, of: Edition) -> int | None:
    """Where all its chunks have their vectors it is searched by them: how many they are."""
    row = tx.one(FINISH_DOCUMENT, document=of.document, edition=of.number)
    if row is None:
        return None
    if of.number > 1:
        tx.run(REMOVE_EDITIONS, document=of.document, edition=of.number)
    return int(row[0])


def tidy(tx: Transaction) -> int:
    """Delete what nobody needs any more, a bite of it; how many vectors that were."""
    tx.run(TIDY_FLIGHTS)
    return len(tx.all(TIDY_VECTORS, n=BITE))
