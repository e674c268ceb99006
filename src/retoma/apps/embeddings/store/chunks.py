"""Chunks and their vectors: cut once, embedded once for their content, by one claim at a time.

A text that several want is taken up by one of them: whoever else wants it waits for its vector, or for the
end of that claim. Nobody waits while holding anything, so nobody waits for ever. All of it is said for many
stories at a time, in a transaction that holds their jobs.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retoma import db
from retoma.apps.embeddings.chunks import Chunk
from retoma.apps.embeddings.model import MetadataValue, Model
from retoma.apps.embeddings.store.rows import SQL
from retoma.engine.rules.job import Held
from retoma.engine.run.transaction import Transaction

BITE = 500  # vectors deleted in one transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedChunk:
    """A chunk with its vector. `start` and `end`: where the text stands in its document."""

    document: int
    ordinal: int
    name: str
    metadata: dict[str, MetadataValue]
    start: int
    end: int
    text: str
    model: str
    version: str
    vector: bytes


@dataclass(frozen=True, slots=True)
class Edition:
    """A document, and as which edition of it its chunks are kept."""

    document: int
    number: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The chunks of a document, each with its hash, that are to be written down."""

    of: Edition
    chunks: Sequence[tuple[Chunk, str]]


@dataclass(frozen=True, slots=True)
class Wish:
    """Texts that a claim wants to take up. `last`: nothing else of its document is missing."""

    held: Held
    of: Edition
    hashes: Sequence[str]
    last: bool
    cut: Cut | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What of that is this claim's to embed, and what has its vector. `done`: the chunks of a document
    that lacks nothing."""

    mine: frozenset[str]
    made: frozenset[str]
    done: int | None = None


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a claim has made. `last`: nothing else of its document is missing."""

    held: Held
    of: Edition
    model: Model
    vectors: Mapping[str, bytes]
    last: bool


def take(tx: Transaction, wishes: Sequence[Wish]) -> list[Taken | None]:
    """Write down what is newly cut, and take up what nobody has in hand or has made, each text for the
    first who wishes for it. None for a document that was deleted."""
    gone = _write_down(tx, [wish.cut for wish in wishes if wish.cut is not None])
    there = [wish for wish in wishes if wish.cut is None or wish.of.document not in gone]
    wanted: dict[str, Held] = {}
    for wish in there:
        for hash_ in wish.hashes:
            wanted.setdefault(hash_, wish.held)
    rows = [
        {"hash": hash_, "job": wanted[hash_].job, "epoch": wanted[hash_].epoch}
        for hash_ in sorted(wanted)
    ]
    found = tx.all(SQL.take_flights, rows=json.dumps(rows)) if rows else []
    made = {hash_ for hash_, _, _, is_made in found if is_made}
    hands = {hash_: (job, epoch) for hash_, job, epoch, is_made in found if not is_made}
    whole = [wish.of for wish in there if wish.last and made.issuperset(wish.hashes)]
    done = finish(tx, whole)
    told = {
        id(wish): Taken(
            frozenset(hash_ for hash_ in wish.hashes if hands.get(hash_) == wish.held),
            frozenset(made.intersection(wish.hashes)),
            done.get(wish.of),
        )
        for wish in there
    }
    return [told.get(id(wish)) for wish in wishes]


def keep(tx: Transaction, made: Sequence[Keeping]) -> list[int | None]:
    """Keep what was made, each once for its content, and let go of what was taken up. The chunks of a
    document that lacks nothing now."""
    for model in {each.model for each in made}:
        _keep_of(tx, model, [each for each in made if each.model == model])
    held = [{"job": each.held.job, "epoch": each.held.epoch} for each in made]
    tx.run(SQL.end_flights, rows=json.dumps(held))
    done = finish(tx, [each.of for each in made if each.last])
    return [done.get(each.of) for each in made]


def finish(tx: Transaction, of: Sequence[Edition]) -> dict[Edition, int]:
    """Documents whose chunks all have their vectors are searched by them: how many those are."""
    if not of:
        return {}
    rows = [{"document": each.document, "edition": each.number} for each in of]
    found = {
        Edition(document, edition): int(chunks)
        for document, edition, chunks in tx.all(SQL.finish_documents, rows=json.dumps(rows))
    }
    for each in found:
        if each.number > 1:
            tx.run(SQL.remove_editions, document=each.document, edition=each.number)
    return found


def texts_of(tx: db.Transaction, of: Edition) -> dict[str, str]:
    """What a document that is cut says, by the hashes of its chunks."""
    return dict(tx.all(SQL.chunks_of, document=of.document, edition=of.number))


def tidy(tx: Transaction) -> int:
    """Delete what nobody needs any more, a bite of it; how many vectors that were."""
    tx.run(SQL.tidy_flights)
    return len(tx.all(SQL.tidy_vectors, n=BITE))


def _write_down(tx: Transaction, cuts: Sequence[Cut]) -> set[int]:
    """Which of these documents were deleted."""
    if not cuts:
        return set()
    documents = {cut.of.document for cut in cuts}
    found = tx.all(SQL.lock_documents, into=int, documents=json.dumps(sorted(documents)))
    there = {*found}
    rows = [row for cut in cuts if cut.of.document in there for row in _rows(cut)]
    if rows:
        hashes = sorted({row["hash"] for row in rows})
        tx.run(SQL.add_chunks, rows=json.dumps(rows), hashes=json.dumps(hashes))
    return documents - there


def _rows(cut: Cut) -> Iterable[dict[str, Any]]:
    document, edition = cut.of.document, cut.of.number
    return (
        {
            "document": document,
            "edition": edition,
            "ordinal": chunk.ordinal,
            "begins": chunk.start,
            "ends": chunk.end,
            "text": chunk.text,
            "hash": hash_,
        }
        for chunk, hash_ in cut.chunks
    )


def _keep_of(tx: Transaction, model: Model, made: Sequence[Keeping]) -> None:
    vectors = {
        hash_: (each.held.job, vector)
        for each in made
        for hash_, vector in each.vectors.items()
    }
    if not vectors:
        return
    hashes = sorted(vectors)
    tx.run(
        SQL.keep_vectors,
        rows=json.dumps([{"hash": hash_, "job": vectors[hash_][0]} for hash_ in hashes]),
        vectors=b"".join(vectors[hash_][1] for hash_ in hashes),
        model=model.name,
        version=model.version,
        dims=model.dims,
    )


def export(
    tx: db.Transaction, collection: int, *, after: tuple[int, int], n: int
) -> list[ExportedChunk]:
    """Chunks with their vectors, after that document and ordinal."""
    document, ordinal = after
    asked = {"collection": collection, "document": document, "ordinal": ordinal, "n": n}
    return tx.all(SQL.export_chunks, into=ExportedChunk, **asked)
