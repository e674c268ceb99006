"""Read one job and the time; write a line of a timeline or of the audit log."""

from datetime import datetime

from retoma.db import Transaction
from retoma.engine.rules.errors import NotFound
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Job
from retoma.engine.store.verb import SQL
from retoma.words import say


def get_job(tx: Transaction, job: int) -> Job:
    found = tx.one(SQL.get_job, into=Job, job=job)
    if found is None:
        raise NotFound(say("there is no job {job}", job=job))
    return found


def job_by_key(tx: Transaction, kind: str, key: str) -> Job:
    job = tx.one(SQL.job_by_key, into=int, kind=kind, key=key)
    if job is None:
        raise NotFound(say("there is no {kind} with the key {key}", kind=kind, key=key))
    return get_job(tx, job)


def now(tx: Transaction) -> datetime:
    """Return the database's time."""
    [at] = tx.all(SQL.now, into=datetime)
    return at


def append_event(
    tx: Transaction,
    job: int,
    seq: int,
    event: EventType,
    actor: str,
    details: str | None,
    *,
    epoch: int | None = None,
) -> None:
    tx.run(
        SQL.append_event,
        job=job,
        seq=seq,
        epoch=epoch,
        type=event,
        actor=actor,
        details=details,
    )


def tell(
    tx: Transaction, *, actor: str, verb: str, subject: str, details: str | None = None
) -> None:
    """A line of the audit log that belongs to no job."""
    tx.run(SQL.tell, actor=actor, verb=verb, subject=subject, details=details)
