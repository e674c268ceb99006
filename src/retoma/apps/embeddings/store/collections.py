"""Collections: how their texts are cut and by what model they are embedded, and how far that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Unpack

from retoma import db
from retoma.apps.embeddings.chunks import Rule
from retoma.apps.embeddings.model import KIND, Ask, Model, NewDocument, Origin
from retoma.apps.embeddings.store import documents
from retoma.apps.embeddings.store.documents import (
    Added,
    follow_batch,
    remove,
)
from retoma.apps.embeddings.store.rows import SQL
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.engine.rules.states import State
from retoma.engine.run.transaction import Transaction
from retoma.words import say

BITE = 200  # documents deleted in one transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """`edition`: how often what it wants was changed, from 1. `batch`: by which it was embedded anew."""

    id: int
    name: str
    model: Model
    rule: Rule
    edition: int
    batch: int | None
    created_by: str
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of its documents are where; `chunks` of those that are embedded."""

    documents: int
    embedded: int
    waiting: int
    processing: int
    failed: int
    parked: int
    chunks: int


def add(tx: Transaction, name: str, model: Model, rule: Rule, *, actor: str) -> Collection:
    """A new one; IllegalMove where there is one of that name."""
    told = {"model": model.name, "version": model.version, "dims": model.dims}
    cut = {"size": rule.size, "overlap": rule.overlap}
    if tx.one(SQL.add_collection, name=name, **told, **cut, actor=actor) is None:
        raise IllegalMove(say("there is a collection {name!r} already", name=name))
    tx.tell("embeddings.collection_added", name, {**told, **cut}, actor=actor)
    return get(tx, name)


def find_or_add(
    tx: Transaction, name: str, model: Model, rule: Rule, *, actor: str
) -> Collection:
    """The one of that name, as it is; a new one where there is none."""
    found = tx.one(SQL.get_collection, into=Collection, name=name)
    return found or add(tx, name, model, rule, actor=actor)


def add_documents(
    tx: Transaction,
    name: str,
    model: Model,
    rule: Rule,
    given: Sequence[NewDocument],
    *,
    follow: bool = False,
    **origin: Unpack[Origin],
) -> Added:
    """Add documents to the collection of that name; make it by this model and rule where there is none."""
    find_or_add(tx, name, model, rule, actor=origin["actor"])
    return documents.add(tx, lock(tx, name).id, name, given, follow=follow, **origin)


def get(tx: db.Transaction, name: str) -> Collection:
    found = tx.one(SQL.get_collection, into=Collection, name=name)
    if found is None:
        raise NotFound(say("there is no collection {name!r}", name=name))
    return found


def lock(tx: Transaction, name: str) -> Collection:
    """As it is, until this transaction ends."""
    found = tx.one(SQL.lock_collection, into=Collection, name=name)
    if found is None:
        raise NotFound(say("there is no collection {name!r}", name=name))
    return found


def list_collections(tx: db.Transaction, *, after: str, n: int) -> list[Collection]:
    return tx.all(SQL.list_collections, into=Collection, after=after, n=n)


def progress(tx: db.Transaction, collection: Collection) -> Progress:
    asked = {"collection": collection.id, "edition": collection.edition}
    [(documents, embedded, chunks)] = tx.all(SQL.count_documents, **asked)
    behind = {state: int(n) for state, n in tx.all(SQL.count_behind, **asked)}
    failed = (State.DEAD, State.CANCELED, State.SKIPPED, State.DONE, "none")
    return Progress(
        documents=int(documents),
        embedded=int(embedded),
        waiting=behind.get(State.WAITING, 0),
        processing=behind.get(State.RUNNING, 0),
        failed=sum(behind.get(state, 0) for state in failed),
        parked=behind.get(State.PARKED, 0),
        chunks=int(chunks),
    )


def change(
    tx: Transaction, name: str, model: Model, rule: Rule | None, *, actor: str
) -> tuple[Collection, bool]:
    """What it wants from now on, and whether that is new. What is at work may not know of it yet: so it
    is committed before anybody asks what is left to do."""
    collection = lock(tx, name)
    wanted = rule or collection.rule
    if (collection.model, collection.rule) == (model, wanted):
        return collection, False
    return _changed(tx, collection, model, wanted, actor), True


def reembed(
    tx: Transaction, name: str, *, follow: bool = False, **origin: Unpack[Origin]
) -> tuple[int | None, int]:
    """Have all documents embedded that are not as their collection wants it, as one batch; how many.

    Asked again it goes on with what is left: nothing is submitted that is done, or waits its turn. Until
    a document has its new vectors it is found by its old ones.
    """
    collection = lock(tx, name)
    asked = {"collection": collection.id, "edition": collection.edition}
    left = tx.all(SQL.list_behind, into=Ask, **asked)
    if not left:
        return None, 0
    title = f"{name} {collection.edition}"
    actor = origin["actor"]
    batch = tx.submit_many(KIND, left, name=title, **origin)
    tx.run(SQL.name_jobs, batch=batch.id)
    if follow:
        follow_batch(tx, batch.id, name, actor=actor)
    tx.run(SQL.name_batch, collection=collection.id, batch=batch.id)
    tx.tell("embeddings.reembedding", name, {"jobs": len(left)}, actor=actor)
    return batch.id, len(left)


def _changed(
    tx: Transaction, collection: Collection, model: Model, rule: Rule, actor: str
) -> Collection:
    told = {"model": model.name, "version": model.version, "dims": model.dims}
    cut = {"size": rule.size, "overlap": rule.overlap}
    now = {"collection": collection.id, "edition": collection.edition}
    tx.run(SQL.change_collection, **told, **cut, **now)
    tx.tell("embeddings.collection_changed", collection.name, {**told, **cut}, actor=actor)
    return get(tx, collection.name)


def remove_some(tx: Transaction, name: str, *, actor: str) -> bool:
    """Delete documents of it, some at a time; whether it is gone itself. Its open jobs are canceled."""
    collection = lock(tx, name)
    for document in tx.all(SQL.first_documents, into=int, collection=collection.id, n=BITE):
        remove(tx, document, actor=actor)
    if tx.one(SQL.remove_collection, collection=collection.id) is None:
        return False
    tx.tell("embeddings.collection_removed", name, actor=actor)
    return True
