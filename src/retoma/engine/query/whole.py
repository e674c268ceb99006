"""All that is known of a job or a batch, one piece after the other, at one instant."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from retoma.codec import decode
from retoma.db import Transaction, moment
from retoma.engine.query.batches import get_batch
from retoma.engine.query.counters import count_jobs
from retoma.engine.query.evidence import job_evidence
from retoma.engine.query.jobs import job_events, job_steps
from retoma.engine.query.page import SQL
from retoma.engine.rules.job import Job
from retoma.engine.store import cost, get_job
from retoma.engine.store.cost import Scope

PAGE = 500


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that is known: what sort of thing, of which job, and its fields."""

    type: str
    job: int | None
    fields: dict[str, Any]


class Subject(NamedTuple):
    """A job, or a batch with all its jobs."""

    job: int | None = None
    batch: int | None = None


def whole(tx: Transaction, subject: Subject, zone: str) -> Iterator[Piece]:
    """Everything, in an order that does not change; NotFound where there is no such thing."""
    if subject.job is not None:
        job = get_job(tx, subject.job)
        yield from _job(tx, job)
        yield from _costs(tx, Scope.JOB, str(job.id), job.id, zone)
        yield from _audit(tx, job.created_at, job=f"job {job.id}", batch="")
        return
    batch = get_batch(tx, subject.batch or 0)
    counts = {str(state): n for state, n in count_jobs(tx, batch.id).items()}
    yield Piece("batch", None, _plain(asdict(batch) | {"counts": counts}))
    after = 0
    while page := tx.all(SQL.batch_jobs, into=int, batch=batch.id, after=after, limit=PAGE):
        for after in page:
            yield from _job(tx, get_job(tx, after))
    yield from _costs(tx, Scope.BATCH, str(batch.id), None, zone)
    yield from _audit(tx, batch.created_at, job="", batch=str(batch.id))


def _job(tx: Transaction, job: Job) -> Iterator[Piece]:
    told = {field.name: getattr(job, field.name) for field in fields(job)}
    told["payload"] = decode(job.payload)
    told["result"] = None if job.result is None else decode(job.result)
    yield Piece("job", job.id, _plain(told))
    for event in job_events(tx, job.id):
        yield Piece("event", job.id, _plain(asdict(event)))
    for step in job_steps(tx, job.id):
        value = None if step.value is None else decode(step.value)
        yield Piece("step", job.id, _plain(asdict(step) | {"value": value}))
    for each in job_evidence(tx, job.id):
        yield Piece("evidence", job.id, _plain(asdict(each)))


def _costs(
    tx: Transaction, scope: Scope, name: str, job: int | None, zone: str
) -> Iterator[Piece]:
    for each in cost.list_costs(tx, scope, zone, name=name):
        yield Piece("cost", job, _plain(asdict(each)))


def _audit(tx: Transaction, since: datetime | None, *, job: str, batch: str) -> Iterator[Piece]:
    for id_, when, actor, verb, subject, details in tx.all(
        SQL.audit_of, since=since, job=job or None, batch=batch or None
    ):
        told = {"id": id_, "at": moment(when), "actor": actor, "verb": verb, "subject": subject}
        known = None if details is None else decode(details)
        yield Piece("audit", None, _plain(told | {"details": known}))


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case datetime():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return value
