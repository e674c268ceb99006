"""The index of words: filled behind the vectors, by whoever searches, so that embedding does not wait for it."""

import json
from collections.abc import Sequence
from typing import Final

from retoma import db
from retoma.apps.embeddings.keywords import indexed_words, query_terms
from retoma.apps.embeddings.store.rows import SQL
from retoma.engine.run.transaction import Transaction

PLACES: Final = 32_768  # rows that a document has in the index: MOST_CHUNKS is less
SLICE: Final = 500  # chunks indexed in one transaction: some 50 ms
DOCUMENTS: Final = 100  # of one slice


def unindexed(tx: db.Transaction, collection: int) -> int:
    """Documents that are not in the index as they are now."""
    [n] = tx.all(SQL.count_unindexed, into=int, collection=collection)
    return n


def index_some(tx: Transaction, collection: int) -> int:
    """Index some documents; how many chunks those are, 0 where none is left."""
    found = tx.all(SQL.unindexed_documents, collection=collection, n=DOCUMENTS)
    documents, chunks = list[int](), 0
    for id_, _, of in found:
        if documents and chunks + of > SLICE:
            break
        documents.append(int(id_))
        chunks += int(of)
    if not documents:
        return 0
    told = json.dumps(documents)
    rows = [
        (rowid, indexed_words(text))
        for rowid, text in tx.all(SQL.texts_to_index, documents=told)
    ]
    tx.run(SQL.index_words, documents=told, rows=json.dumps(rows), collection=collection)
    return max(chunks, 1)


def find(
    tx: db.Transaction, collection: int, question: str, n: int, documents: Sequence[int] | None
) -> list[tuple[int, int]]:
    """The document and ordinal of chunks that say words of the question, the best first."""
    terms = query_terms(question, collection, tx.dialect)
    if terms is None:
        return []
    only = None if documents is None else json.dumps([*documents])
    which = {"collection": collection, "terms": terms, "documents": only, "n": n}
    return [divmod(rowid, PLACES) for rowid in tx.all(SQL.find_words, into=int, **which)]


def documents_with(tx: db.Transaction, collection: int, pairs: dict[str, str]) -> set[int]:
    """Which documents have all of these pairs of metadata."""
    told = {"collection": collection, "pairs": json.dumps(pairs), "n": len(pairs)}
    return {*tx.all(SQL.documents_with, into=int, **told)}
