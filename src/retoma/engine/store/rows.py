"""Read one job and the time; write a line of a timeline or of the audit log."""

from datetime import datetime

from retoma.db import Transaction
from retoma.engine.rules.errors import NotFound
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Job
from retoma.engine.store.verb import verb
from retoma.words import say

GET_JOB = verb("get_job")
JOB_BY_KEY = verb("job_by_key")
APPEND_EVENT = verb("append_event")
NOW = verb("now")
TELL = verb("tell")


def get_job(tx: Transaction, job: int) -> Job:
    found = tx.one(GET_JOB, into=Job, job=job)
    if found is None:
        raise NotFound(say("there is no job {job}", job=job))
    return found


def job_by_key(tx: Transaction, kind: str, key: str) -> Job:
    job = tx.one(JOB_BY_KEY, into=int, kind=kind, key=key)
    if job is None:
        raise NotFound(say("there is no {kind} with the key {key}", kind=kind, key=key))
    return get_job(tx, job)


def now(tx: Transaction) -> datetime:
    """Return the database's time."""
    [at] = tx.all(NOW, into=datetime)
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
        APPEND_EVENT,
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
    tx.run(TELL, actor=actor, verb=verb, subject=subject, details=details)
