"""One job as its row tells it, and the line of its timeline that a move writes."""

from retoma.db import Row, Transaction, moment
from retoma.engine.rules.errors import NotFound
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.engine.store.verb import verb
from retoma.words import say

GET_JOB = verb("get_job")
JOB_BY_KEY = verb("job_by_key")
APPEND_EVENT = verb("append_event")
TELL = verb("tell")


def get_job(tx: Transaction, job: int) -> Job:
    row = tx.one(GET_JOB, job=job)
    if row is None:
        raise NotFound(say("there is no job {job}", job=job))
    return job_from(row)


def job_by_key(tx: Transaction, kind: str, key: str) -> Job:
    row = tx.one(JOB_BY_KEY, kind=kind, key=key)
    if row is None:
        raise NotFound(say("there is no {kind} with the key {key}", kind=kind, key=key))
    return get_job(tx, row[0])


def job_from(row: Row) -> Job:
    """A row in the order of get_job.sql and list_jobs.sql."""
    (
        id_, kind, version, queue, batch, key, generation, state, reason, code, priority,
        run_at, turn, aside, epoch, runner, failures, lost, checkpoint, progress, note,
        progress_at, cancel_at, correlation, payload, result, created_at, started_at, ended_at,
        discarded_at,
    ) = row  # fmt: skip
    return Job(
        id=id_,
        kind=kind,
        version=version,
        queue=queue,
        batch=batch,
        key=key,
        generation=generation,
        state=State(state),
        reason=reason,
        code=code,
        priority=priority,
        run_at=moment(run_at),
        due=turn is not None,
        aside=aside,
        epoch=epoch,
        runner=runner,
        failures=failures,
        lost=lost,
        checkpoint=checkpoint,
        progress=progress,
        note=note,
        progress_at=moment(progress_at),
        cancel_at=moment(cancel_at),
        correlation=correlation,
        payload=payload,
        result=result,
        created_at=moment(created_at),
        started_at=moment(started_at),
        ended_at=moment(ended_at),
        discarded_at=moment(discarded_at),
    )


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
