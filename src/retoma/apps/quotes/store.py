"""The rows of the quotes application, by named SQL."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from heapq import nlargest
from typing import Any, Final, NamedTuple

from retoma import db
from retoma.apps.quotes.model import (
    CONFIGURATION,
    KIND,
    MEANINGS,
    ProcessingCheckpoint,
    QuoteKind,
    QuoteStatus,
)
from retoma.db import Json, Row
from retoma.db.rows import read_json
from retoma.db.statements import Statements
from retoma.engine import store as engine
from retoma.engine.query.jobs import ids_of
from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import NotFound
from retoma.engine.rules.states import State
from retoma.engine.run.transaction import Transaction
from retoma.words import say, stored

SQL: Final = Statements("retoma.apps.quotes.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedQuote:
    """What a list says of a quote, by the names of the document."""

    id: int
    batch_request_id: int | None
    codigo: str | None
    tipo: str
    descricao: str
    status: QuoteStatus
    processing_checkpoint: ProcessingCheckpoint | None
    worker_id: str | None
    started_at: datetime | None
    completed_at: datetime | None
    attempt_number: int
    result: Json
    error_code: str | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteRow:
    """All that the table says of a quote, by the names of the document."""

    id: int
    batch_request_id: int | None
    codigo: str | None
    tipo: str
    descricao: str
    status: QuoteStatus
    processing_checkpoint: ProcessingCheckpoint | None
    last_heartbeat: datetime | None
    worker_id: str | None
    resume_data: Json
    started_at: datetime | None
    completed_at: datetime | None
    attempt_number: int
    claude_payload_json: Json
    google_shopping_response_json: Json
    result: Json
    error_code: str | None
    created_by: str
    created_at: datetime | None
    job: int | None


@dataclass(frozen=True, slots=True)
class NewQuote:
    """What somebody wants to have quoted."""

    description: str
    kind: QuoteKind = QuoteKind.AUTO
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a story is told of its quote. `was`: what was paid for before it came to us."""

    description: str
    kind: QuoteKind
    was: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Added:
    """The numbers of new quotes, and of their lote."""

    lote: int | None
    quotes: Sequence[int]


def add_quote(tx: Transaction, wanted: NewQuote, *, actor: str) -> int:
    [quote] = _add(tx, [wanted], actor)
    job = tx.submit(KIND, quote, actor=actor)
    tx.run(SQL.name_job, quote=quote, job=job.id)
    return quote


def add_lote(
    tx: Transaction,
    wanted: Sequence[NewQuote],
    *,
    actor: str,
    name: str | None = None,
    budget: str | None = None,
) -> Added:
    """All of them or none, as one batch."""
    quotes = _add(tx, wanted, actor)
    batch = tx.submit_many(KIND, quotes, name=name, budget=budget, actor=actor)
    tx.run(SQL.name_jobs, lote=batch.id)
    return Added(batch.id, quotes)


def _add(tx: Transaction, wanted: Sequence[NewQuote], actor: str) -> list[int]:
    rows = [
        {"code": each.code, "kind": str(each.kind), "description": each.description}
        for each in wanted
    ]
    return tx.all(SQL.add_quotes, into=int, rows=json.dumps(rows), actor=actor)


def wanted_of(tx: db.Transaction, quote: int) -> Wanted:
    row = tx.one(SQL.get_wanted, quote=quote)
    if row is None:
        raise NotFound(say("there is no quote {quote}", quote=quote))
    description, kind, was, *since = row
    names = ("claude_payload_json", "google_shopping_response_json", "resume_data")
    told = {name: read_json(value) for name, value in zip(names, since, strict=True)}
    known = {name: value for name, value in told.items() if value is not None}
    return Wanted(description, QuoteKind(kind), {**(read_json(was) or {}), **known})


def job_of(tx: db.Transaction, quote: int) -> int:
    """The job of a quote; NotFound where there is no such quote, or it is history only."""
    rows = tx.all(SQL.job_of_quote, into=int, quote=quote)
    if not rows:
        raise NotFound(say("there is no quote {quote}", quote=quote))
    [job] = rows
    if job is None:
        raise NotFound(
            say("quote {quote} was taken over as history: it has no job", quote=quote)
        )
    return job


def quotes_of(tx: db.Transaction, jobs: Sequence[int]) -> dict[int, int]:
    """Which quotes these jobs are of."""
    rows = tx.all(SQL.quotes_of_jobs, jobs=json.dumps([*jobs]))
    return {int(job): int(quote) for job, quote in rows}


def expire_old(tx: Transaction, age: Any, *, actor: str) -> list[int]:
    """Let the next claim end in ERROR what began so long ago and no runner holds; return those jobs."""
    return _expired(tx, "quotes.expired", tx.all(SQL.expire_old, seconds=seconds(age)), actor)


def expire_parked(tx: Transaction, age: Any, *, n: int, actor: str) -> list[int]:
    """As `expire_old`, for at most `n` quotes that are parked."""
    found = tx.all(SQL.expire_parked, seconds=seconds(age), n=n)
    for job, _ in found:
        engine.unpark(tx, int(job), actor=actor)
    return _expired(tx, "quotes.parked_expired", found, actor)


def _expired(tx: Transaction, event: str, found: Sequence[Row], actor: str) -> list[int]:
    jobs = [int(job) for job, _ in found]
    if jobs:
        tx.tell(event, str(len(jobs)), jobs, actor=actor)
    return jobs


class Parked(NamedTuple):
    """Quotes that wait for somebody, by the code of what stopped them."""

    code: str
    quotes: int
    message: str | None  # of the newest of them


def parked_by_code(tx: db.Transaction, lote: int | None = None) -> list[Parked]:
    """The most first; of one lote, or of all."""
    rows = tx.all(SQL.parked_by_code, lote=lote)
    return [Parked(code or "", n, parked_message(tx, newest)) for code, n, newest in rows]


def parked_message(tx: db.Transaction, job: int) -> str | None:
    """What stopped a job that is parked, as its last attempt said it."""
    return tx.one(SQL.parked_message, into=str, job=job)


def watch(tx: db.Transaction) -> dict[str, dict[str, Any]]:
    """An alert where quotes wait until somebody puts the configuration right."""
    waiting = [each for each in parked_by_code(tx) if each.code in CONFIGURATION]
    if not waiting:
        return {}
    n = sum(each.quotes for each in waiting)
    why = reduce(
        lambda some, more: say("{some}; {more}", some=some, more=more),
        [MEANINGS[each.code] for each in waiting],
    )
    if n == 1:
        text = say("1 quote waits for configuration: {why}", why=why)
    else:
        text = say("{n} quotes wait for configuration: {why}", n=n, why=why)
    found = {**stored(text), "quotes": n}
    return {"waiting_for_configuration": found | {each.code: each.quotes for each in waiting}}


def average_duration(tx: db.Transaction, last: Any) -> float | None:
    """Seconds that quotes took from their first start to DONE, of those that ended within `last`."""
    return tx.one(SQL.average_duration, into=float, seconds=seconds(last))


def quote_seen(tx: db.Transaction, quote: int) -> QuoteRow:
    """All that the table says of a quote."""
    found = tx.one(SQL.get_quote, into=QuoteRow, quote=quote)
    if found is None:
        raise NotFound(say("there is no quote {quote}", quote=quote))
    return found


# — lists —

# Of which states jobs are whose quotes are in a status; of those that wait, whether they were begun.
STATES: Final[Mapping[QuoteStatus, Sequence[State]]] = {
    QuoteStatus.PENDING: (State.PARKED,),
    QuoteStatus.PROCESSING: (State.RUNNING, State.PARKED),
    QuoteStatus.DONE: (State.DONE,),
    QuoteStatus.ERROR: (State.DEAD,),
    QuoteStatus.CANCELED: (State.CANCELED, State.SKIPPED),
}
BEGUN: Final = {QuoteStatus.PENDING: False, QuoteStatus.PROCESSING: True}


class Place(NamedTuple):
    """Where a page ended. Of a list by status: at a job; or, at no job, in what was taken over."""

    quote: int
    job: int


class _ByJob(NamedTuple):
    quote: ListedQuote
    job: int


def list_quotes(
    tx: db.Transaction,
    *,
    n: int,
    lote: int | None = None,
    status: QuoteStatus | None = None,
    worker: str | None = None,
    before: Place | None = None,
) -> list[tuple[Place, ListedQuote]]:
    """The newest first. By status they come by their jobs, each state by the index that is short for it."""
    if worker is not None:
        held = tx.all(SQL.quotes_at, into=int, worker=worker)
        left = [job for job in held if before is None or job < before.job]
        return _by_job(tx, left, lote=lote, status=status)[:n]
    if status is not None:
        these = _in_status(tx, status, lote=lote, before=before, n=n)
        if len(these) == n:
            return these
        return these + _history(tx, status, lote, before, n - len(these))
    asked: dict[str, Any] = {"before": before and before.quote, "n": n}
    if lote is None:
        found = tx.all(SQL.list_quotes, into=ListedQuote, **asked)
    else:
        found = tx.all(SQL.list_lote_quotes, into=ListedQuote, lote=lote, **asked)
    return [(Place(each.id, 0), each) for each in found]


def export_quotes(tx: db.Transaction, *, lote: int, after: int, n: int) -> list[ListedQuote]:
    """The next quotes of a lote, in the order in which they were asked for."""
    return tx.all(SQL.export_quotes, into=ListedQuote, lote=lote, after=after, n=n)


def _in_status(
    tx: db.Transaction, status: QuoteStatus, *, lote: int | None, before: Place | None, n: int
) -> list[tuple[Place, ListedQuote]]:
    found: list[tuple[Place, ListedQuote]] = []
    last = None if before is None else before.job
    # What is parked may have been begun or not: who is not of this status makes room for another.
    while len(found) < n and last != 0:
        jobs = _jobs_of(tx, status, lote=lote, before=last, n=n)
        found += _by_job(tx, jobs, lote=lote, status=status)
        last = jobs[-1] if len(jobs) == n else 0
    return found[:n]


def _jobs_of(
    tx: db.Transaction, status: QuoteStatus, *, lote: int | None, before: int | None, n: int
) -> list[int]:
    found = [
        job
        for state in STATES[status]
        for job in ids_of(tx, state=state, kind=KIND, batch=lote, before=before, limit=n)
    ]
    if status in BEGUN:
        begun = BEGUN[status]
        which = {"begun": begun, "lote": lote, "before": before, "n": n}
        found += tx.all(SQL.waiting_quotes, into=int, **which)
    return nlargest(n, found)


def _by_job(
    tx: db.Transaction, jobs: Sequence[int], *, lote: int | None, status: QuoteStatus | None
) -> list[tuple[Place, ListedQuote]]:
    asked = {"lote": lote, "status": None if status is None else str(status)}
    rows = tx.all(SQL.quotes_by_job, into=_ByJob, jobs=json.dumps([*jobs]), **asked)
    return [(Place(quote.id, job), quote) for quote, job in rows]


def _history(
    tx: db.Transaction, status: QuoteStatus, lote: int | None, before: Place | None, n: int
) -> list[tuple[Place, ListedQuote]]:
    """What was taken over and has no job; it is older than all that has one."""
    last = None if before is None or before.job else before.quote
    which = {"status": str(status), "lote": lote, "before": last, "n": n}
    found = tx.all(SQL.list_history, into=ListedQuote, **which)
    return [(Place(each.id, 0), each) for each in found]


def by_status(
    tx: db.Transaction, lote: int, counts: Mapping[State, int]
) -> dict[QuoteStatus, int]:
    """How many of a lote are in each, as its lists have them; their sum is that of the counts."""
    found = {
        status: sum(counts.get(each, 0) for each in states) for status, states in STATES.items()
    }
    waiting, parked = counts.get(State.WAITING, 0), counts.get(State.PARKED, 0)
    begun, fresh = (
        (tx.one(SQL.count_begun, lote=lote) or (0, 0)) if waiting or parked else (0, 0)
    )
    begun, fresh = min(begun, waiting), min(fresh, parked)
    found[QuoteStatus.PENDING] = waiting - begun + fresh
    found[QuoteStatus.PROCESSING] += begun - fresh
    return found
