"""Documents: what is to be found again, each with the one job that embeds it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Unpack

from retoma import db
from retoma.apps.embeddings.chunks import Rule
from retoma.apps.embeddings.model import (
    COMPLETION,
    KIND,
    STATUS,
    Ask,
    Flaw,
    JobStatus,
    MetadataValue,
    Model,
    NewDocument,
    Origin,
    flaw_of,
    metadata_pairs,
)
from retoma.apps.embeddings.store.rows import SQL
from retoma.engine import store as engine
from retoma.engine.rules.errors import IllegalMove, NotFound
from retoma.engine.rules.states import State
from retoma.engine.run.transaction import Transaction
from retoma.words import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document without its text. `embedded`: as its collection wants it now; `state`, `code`: of its job,
    None once that job is deleted."""

    id: int
    collection: str
    name: str
    sha256: str
    characters: int
    chunks: int
    edition: int
    embedded: bool
    job: int | None
    state: State | None
    code: str | None
    created_by: str
    created_at: datetime | None
    embedded_at: datetime | None
    metadata: dict[str, MetadataValue]

    @property
    def status(self) -> JobStatus | None:
        """The state of its job, as the document of this application calls it."""
        return None if self.state is None else STATUS[self.state]


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """A document by its name, and the name of its collection."""

    id: int
    name: str
    collection: str


@dataclass(frozen=True, slots=True)
class Added:
    """What became of a submission: new documents by their place, those that were there, and flaws."""

    batch: int | None
    new: dict[int, int]  # place: document
    already: dict[int, int]
    flaws: Sequence[Flaw]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a story is told of its document. `has`: the edition it is searched by; `edition`: the wanted,
    which may be cut already."""

    id: int
    name: str
    text: str
    has: int
    edition: int
    model: Model
    rule: Rule
    is_cut: bool


def add(
    tx: Transaction,
    collection: int,
    name: str,
    given: Sequence[NewDocument],
    *,
    follow: bool = False,
    **origin: Unpack[Origin],
) -> Added:
    """Add the documents that have no flaw, as one batch; `follow`: notify the webhook of its end. The same
    name and text again is the document that is there; the same name with another text replaces it. The caller
    has locked the collection."""
    flaws = [flaw for n, each in enumerate(given) if (flaw := flaw_of(n, each)) is not None]
    bad = {flaw.place for flaw in flaws}
    fit = {n: each for n, each in enumerate(given) if n not in bad}
    fit, twice = _once(fit)
    there = _named(tx, collection, [each.name for each in fit.values()])
    already = {
        n: there[each.name][0]
        for n, each in fit.items()
        if each.name in there and there[each.name][1] == _sha256(each.text)
    }
    new = {n: each for n, each in fit.items() if n not in already}
    for each in new.values():
        if each.name in there:
            remove(tx, there[each.name][0], actor=origin["actor"])
    batch, ids = _submitted(tx, collection, name, [*new.values()], origin)
    if follow and batch is not None:
        follow_batch(tx, batch, name, actor=origin["actor"])
    taken = dict(zip(new, ids, strict=True))
    _keep_metadata(tx, collection, {id_: fit[n] for n, id_ in (taken | already).items()})
    return Added(batch, taken, already, [*flaws, *twice])


def _keep_metadata(
    tx: Transaction, collection: int, documents: Mapping[int, NewDocument]
) -> None:
    """Of those that were sent with any, an empty one among them."""
    rows = [
        {
            "document": id_,
            "metadata": json.dumps(dict(each.metadata), ensure_ascii=False),
            "pairs": metadata_pairs(each.metadata),
        }
        for id_, each in documents.items()
        if each.metadata is not None
    ]
    if rows:
        tx.run(SQL.keep_metadata, collection=collection, rows=json.dumps(rows))


def _once(fit: dict[int, NewDocument]) -> tuple[dict[int, NewDocument], list[Flaw]]:
    """Of two of one name in a submission the first is taken."""
    seen: dict[str, int] = {}
    for place, each in fit.items():
        seen.setdefault(each.name, place)
    first = {place: each for place, each in fit.items() if seen[each.name] == place}
    said = say("another document of this submission has the same name")
    twice = [
        Flaw(place, each.name, "twice", said)
        for place, each in fit.items()
        if place not in first
    ]
    return first, twice


def _named(
    tx: Transaction, collection: int, names: Sequence[str]
) -> dict[str, tuple[int, str]]:
    rows = tx.all(SQL.find_named, collection=collection, names=json.dumps([*names]))
    return {name: (int(id_), sha) for id_, name, sha, _ in rows}


def _submitted(
    tx: Transaction,
    collection: int,
    name: str,
    new: Sequence[NewDocument],
    origin: Origin,
) -> tuple[int | None, list[int]]:
    if not new:
        return None, []
    rows = [
        {"name": each.name, "sha256": _sha256(each.text), "text": each.text} for each in new
    ]
    asked = {"collection": collection, "actor": origin["actor"]}
    ids = tx.all(SQL.add_documents, into=int, rows=json.dumps(rows), **asked)
    asks = [Ask(id_) for id_ in ids]
    batch = tx.submit_many(KIND, asks, name=name, **origin)
    tx.run(SQL.name_jobs, batch=batch.id)
    return batch.id, ids


def follow_batch(tx: Transaction, batch: int, collection: str, *, actor: str) -> None:
    """Have the webhook told once its documents have ended."""
    told = {"batch": batch, "collection": collection}
    tx.submit(COMPLETION, told, key=f"batch-{batch}", actor=actor)


def follow_again(tx: Transaction, job: int, *, actor: str) -> bool:
    """Have the webhook told again of the batch of a document that was retried.

    False: it may be told right now, of what was before; ask again once that has ended.
    """
    found = tx.one(SQL.follower_of, job=job)
    if found is None:
        return True
    follower, state = found[0], State(found[1])
    if state in (State.DONE, State.DEAD, State.SKIPPED):
        try:
            engine.again(tx, follower, actor=actor)
        except IllegalMove:  # another document of its batch was quicker
            return False
    return state is not State.RUNNING


def wanted_of(tx: db.Transaction, documents: Sequence[int]) -> dict[int, Wanted]:
    """By their ids; those that were deleted are not among them."""
    rows = tx.all(SQL.get_wanted, into=Wanted, documents=json.dumps([*documents]))
    return {each.id: each for each in rows}


def get(tx: db.Transaction, document: int) -> Document:
    found = tx.one(SQL.show_document, into=Document, document=document)
    if found is None:
        raise NotFound(say("there is no document {document}", document=document))
    return found


def of_jobs(tx: db.Transaction, jobs: Sequence[int]) -> dict[int, NamedDocument]:
    """Return the documents of these jobs, by job; those that were deleted are not among them."""
    rows = tx.all(SQL.documents_of_jobs, jobs=json.dumps([*jobs]))
    return {int(job): NamedDocument(int(id_), name, of) for job, id_, name, of in rows}


def list_documents(
    tx: db.Transaction, collection: int, *, embedded: bool | None, after: int, n: int
) -> list[Document]:
    told = None if embedded is None else int(embedded)
    which = {"collection": collection, "embedded": told, "after": after, "n": n}
    return tx.all(SQL.list_documents, into=Document, **which)


def remove(tx: Transaction, document: int, *, actor: str) -> None:
    """Delete it. Its job is canceled where it is open, and where it is at work writes nothing more."""
    row = tx.one(SQL.job_of_document, document=document)
    if row is None:
        raise NotFound(say("there is no document {document}", document=document))
    job, collection = row
    if job is not None:
        _cancel(tx, int(job), actor)
    tx.run(SQL.remove_document, document=document)
    tx.tell("embeddings.document_removed", f"{collection} {document}", actor=actor)


def _cancel(tx: Transaction, job: int, actor: str) -> None:
    if not engine.get_job(tx, job).ended:
        try:
            tx.cancel(job, actor=actor)
        except IllegalMove:  # it has ended since
            return


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()
