"""Documents: what is to be found again, each with the one job that embeds it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from retoma.apps.embeddings.chunks import Rule
from retoma.apps.embeddings.model import (
    COMPLETION,
    KIND,
    Ask,
    Flaw,
    Model,
    NewDocument,
    flaw_of,
    metadata_pairs,
)
from retoma.apps.embeddings.store.rows import named, time_of, verb
from retoma.db import Row
from retoma.db import Transaction as Reading
from retoma.engine import store as engine
from retoma.engine.errors import IllegalMove, NotFound
from retoma.engine.transaction import Transaction
from retoma.words import say

ADD_DOCUMENTS = verb("add_documents")
FIND_NAMED = verb("find_named")
FIRST_DOCUMENTS = verb("first_documents")
GET_WANTED = verb("get_wanted")
JOB_OF_DOCUMENT = verb("job_of_document")
KEEP_METADATA = verb("keep_metadata")
LIST_DOCUMENTS = verb("list_documents")
NAME_JOBS = verb("name_jobs")
REMOVE_DOCUMENT = verb("remove_document")
SHOW_DOCUMENT = verb("show_document")

COLUMNS: Final = (
    *("id", "collection", "name", "sha256", "characters", "chunks", "edition", "embedded"),
    *("job", "state", "code", "created_by", "created_at", "embedded_at", "metadata"),
)


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
    actor: str,
    correlation: str | None = None,
    traceparent: str | None = None,
    follow: bool = False,
) -> Added:
    """Take what can be taken, as one batch; `follow`: whether a webhook is told of its end. The same name and text again is the document that is there;
    the same name with another text takes its place. The collection is locked by whoever calls."""
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
            remove(tx, there[each.name][0], actor=actor)
    how = {"actor": actor, "correlation": correlation, "traceparent": traceparent}
    batch, ids = _submitted(tx, collection, name, [*new.values()], how)
    if follow and batch is not None:
        follow_batch(tx, batch, name, actor=actor)
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
        tx.run(KEEP_METADATA, collection=collection, rows=json.dumps(rows))


def _once(fit: dict[int, NewDocument]) -> tuple[dict[int, NewDocument], list[Flaw]]:
    """Of two of one name in a submission the first is taken."""
    seen: dict[str, int] = {}
    for place, each in fit.items():
        seen.setdefault(each.name, place)
    first = {place: each for place, each in fit.items() if seen[each.name] == place}
    said = str(say("another document of this submission has the same name"))
    twice = [
        Flaw(place, each.name, "twice", said)
        for place, each in fit.items()
        if place not in first
    ]
    return first, twice


def _named(
    tx: Transaction, collection: int, names: Sequence[str]
) -> dict[str, tuple[int, str]]:
    rows = tx.all(FIND_NAMED, collection=collection, names=json.dumps([*names]))
    return {name: (int(id_), sha) for id_, name, sha, _ in rows}


def _submitted(
    tx: Transaction,
    collection: int,
    name: str,
    new: Sequence[NewDocument],
    how: Mapping[str, Any],
) -> tuple[int | None, list[int]]:
    if not new:
        return None, []
    rows = [
        {"name": each.name, "sha256": _sha256(each.text), "text": each.text} for each in new
    ]
    asked = {"collection": collection, "actor": how["actor"]}
    found = tx.all(ADD_DOCUMENTS, rows=json.dumps(rows), **asked)
    ids = [int(id_) for (id_,) in found]
    asks = [Ask(id_) for id_ in ids]
    batch = tx.submit_many(KIND, asks, name=name, **how)
    tx.run(NAME_JOBS, batch=batch.id)
    return batch.id, ids


def follow_batch(tx: Transaction, batch: int, collection: str, *, actor: str) -> None:
    """Have the webhook told once its documents have ended."""
    told = {"batch": batch, "collection": collection}
    tx.submit(COMPLETION, told, key=f"batch-{batch}", actor=actor)


def wanted_of(tx: Reading, documents: Sequence[int]) -> dict[int, Wanted]:
    """By their ids; those that were deleted are not among them."""
    rows = tx.all(GET_WANTED, documents=json.dumps([*documents]))
    return {row[0]: _wanted(row) for row in rows}


def _wanted(row: Row) -> Wanted:
    id_, name, text, has, edition, model, version, dims, size, overlap, is_cut = row
    by = Model(model, version, dims)
    return Wanted(id_, name, text, has, edition, by, Rule(size, overlap), bool(is_cut))


def show(tx: Reading | Transaction, document: int) -> dict[str, Any]:
    row = tx.one(SHOW_DOCUMENT, document=document)
    if row is None:
        raise NotFound(say("there is no document {document}", document=document))
    return _seen(row)


def list_documents(
    tx: Reading, collection: int, *, embedded: bool | None, after: int, n: int
) -> list[dict[str, Any]]:
    told = None if embedded is None else int(embedded)
    rows = tx.all(LIST_DOCUMENTS, collection=collection, embedded=told, after=after, n=n)
    return [_seen(row) for row in rows]


def remove(tx: Transaction, document: int, *, actor: str) -> None:
    """Delete it. Its job is canceled where it is open, and where it is at work writes nothing more."""
    row = tx.one(JOB_OF_DOCUMENT, document=document)
    if row is None:
        raise NotFound(say("there is no document {document}", document=document))
    job, collection = row
    if job is not None:
        _cancel(tx, int(job), actor)
    tx.run(REMOVE_DOCUMENT, document=document)
    tx.tell("embeddings.document_removed", f"{collection} {document}", actor=actor)


def _cancel(tx: Transaction, job: int, actor: str) -> None:
    if not tx.inside(lambda inner: engine.get_job(inner, job)).ended:
        try:
            tx.cancel(job, actor=actor)
        except IllegalMove:  # it has ended since
            return


def _sha256(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _seen(row: Row) -> dict[str, Any]:
    told = named(COLUMNS, row)
    told["embedded"] = bool(told["embedded"])
    told["metadata"] = json.loads(told["metadata"])
    for name in ("created_at", "embedded_at"):
        told[name] = time_of(told[name])
    return told
