"""Every question about jobs. Nothing here writes, and nothing counts history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from retoma.codec import decode
from retoma.db import Row, Statement, Transaction, moment, statement
from retoma.engine.errors import BadInput, NotFound
from retoma.engine.events import EventType
from retoma.engine.job import Job
from retoma.engine.states import State
from retoma.engine.store import get_job, job_from

PAGE = 200  # rows at most


def _sql(verb: str) -> Statement:
    return statement("retoma.engine.sql", verb)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a job's timeline."""

    seq: int
    epoch: int | None
    type: EventType
    at: datetime
    actor: str | None
    details: Any


@dataclass(frozen=True, slots=True)
class AttemptSeen:
    """One claim of a job, from its event to the one that ended it."""

    epoch: int
    runner: str
    claimed_at: datetime
    ended_at: datetime | None
    ended: str | None


@dataclass(frozen=True, slots=True)
class StepSeen:
    """One step of a job, as it is kept."""

    name: str
    version: int
    key: str
    state: str
    generation: int
    epoch: int
    saved_at: datetime | None
    value: str | None


@dataclass(frozen=True, slots=True)
class BatchSeen:
    """A batch, without its counts."""

    id: int
    name: str
    kind: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RunnerSeen:
    """A runner's row."""

    boot: str
    name: str
    host: str
    pid: int
    state: str
    beat_at: datetime
    lease_until: datetime
    slots: int
    knows: list[str]
    expired: bool


def list_jobs(
    tx: Transaction,
    *,
    state: State | None = None,
    kind: str | None = None,
    batch: int | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[Job]:
    """Newest first; the next page begins before the last id of this one."""
    if not 1 <= limit <= PAGE:
        raise BadInput(f"a page has 1 to {PAGE} jobs, not {limit}")
    rows = tx.all(LIST_JOBS, state=state, kind=kind, batch=batch, before=before, limit=limit)
    return [job_from(row) for row in rows]


def count_jobs(tx: Transaction, batch: int | None = None) -> dict[State, int]:
    """How many are in each state, exact at this instant."""
    counted = _counted(tx, batch)
    return {state: counted[state] for state in State if counted.get(state)}


def refused_writes(tx: Transaction) -> int:
    """Late writes that changed nothing, ever."""
    return _counted(tx, None).get("refused", 0)


def _counted(tx: Transaction, batch: int | None) -> dict[str, int]:
    return {state: int(n) for state, n in tx.all(COUNT_JOBS, batch=batch)}


def job_events(tx: Transaction, job: int) -> list[Event]:
    return [_event(row) for row in tx.all(JOB_EVENTS, job=job)]


def job_attempts(tx: Transaction, job: int) -> list[AttemptSeen]:
    return [
        AttemptSeen(epoch, runner, _at(claimed), moment(ended), how)
        for epoch, runner, claimed, ended, how in tx.all(JOB_ATTEMPTS, job=job)
    ]


def job_steps(tx: Transaction, job: int) -> list[StepSeen]:
    return [
        StepSeen(name, version, key, state, generation, epoch, moment(saved_at), value)
        for name, version, key, state, generation, epoch, saved_at, value in tx.all(
            JOB_STEPS, job=job
        )
    ]


def get_batch(tx: Transaction, batch: int) -> BatchSeen:
    row = tx.one(GET_BATCH, batch=batch)
    if row is None:
        raise NotFound(f"there is no batch {batch}")
    return _batch(row)


def list_batches(
    tx: Transaction, *, before: int | None = None, limit: int = 50
) -> list[BatchSeen]:
    """Newest first."""
    if not 1 <= limit <= PAGE:
        raise BadInput(f"a page has 1 to {PAGE} batches, not {limit}")
    return [_batch(row) for row in tx.all(LIST_BATCHES, before=before, limit=limit)]


def list_runners(tx: Transaction) -> list[RunnerSeen]:
    """Those who say they live, and those recently gone; the latest beat first."""
    return [_runner(row) for row in tx.all(LIST_RUNNERS)]


def explain(tx: Transaction, job: int) -> str:
    """Why it is not running, in one sentence, and what would change it."""
    found = get_job(tx, job)
    now = _at(tx.all(NOW)[0][0])
    return f"job {job}: {_reason(tx, found, now)}"


def _reason(tx: Transaction, job: Job, now: datetime) -> str:
    match job.state:
        case State.RUNNING:
            return _why_running(tx, job, now)
        case State.WAITING:
            return _why_waiting(tx, job, now)
        case State.PARKED:
            return f"parked ({job.reason}): it waits for a person; resume or cancel it"
        case State.DEAD:
            said = _last_message(tx, job.id)
            return (
                f"dead ({job.reason}, code {job.code}){said}: it stays so until somebody tries"
                " it again"
            )
        case State.DONE | State.SKIPPED | State.CANCELED:
            return f"{job.state} since {_clock(job.ended_at)}: only 'retry' would run it again"


def _why_running(tx: Transaction, job: Job, now: datetime) -> str:
    runner = next((each for each in list_runners(tx) if each.boot == job.runner), None)
    if runner is None or runner.state in ("lost", "gone"):
        return "its runner is lost: it is taken back within seconds"
    if job.cancel_at is not None:
        return f"running; asked to stop at {_clock(job.cancel_at)}, ends at its next step"
    if runner.lease_until < now:
        return (
            f"its runner {runner.name} is silent since {_clock(runner.beat_at)} and its lease is"
            " over: another runner takes the job back on its next tick"
        )
    where = f" at {job.checkpoint}" if job.checkpoint else ""
    return f"running{where} on {runner.name} since {_clock(job.started_at)}"


def _why_waiting(tx: Transaction, job: Job, now: datetime) -> str:
    if job.aside is not None:
        return f"set aside by {job.aside}: it goes on when that opens"
    tag = f"{job.kind}@{job.version}"
    living = [each for each in list_runners(tx) if each.state == "alive" and not each.expired]
    knowing = [each for each in living if tag in each.knows]
    if not job.due and job.run_at is not None and job.run_at > now:
        left = _rounded(job.run_at - now)
        if job.failures:
            return (
                f"backing off after {job.failures} failed attempts (code {job.code}): next try"
                f" {_clock(job.run_at)}, in {left}"
            )
        return f"scheduled for {_clock(job.run_at)}, in {left}"
    if not knowing:
        others = f"; {len(living)} runners live, none of them knows it" if living else ""
        return f"no runner for {job.kind} version {job.version} is alive{others}: start one"
    if job.suspect:
        return (
            f"a suspect: it was on {job.lost} runners that died without progress; suspects run one"
            " at a time on each runner, and a third loss buries it"
        )
    return f"waiting its turn; {len(knowing)} runners know its kind and take it when a slot is free"


def _last_message(tx: Transaction, job: int) -> str:
    for event in reversed(job_events(tx, job)):
        if event.type is EventType.BURIED and isinstance(event.details, dict):
            message = event.details.get("message")
            return f": {message}" if message else ""
    return ""


def _clock(at: datetime | None) -> str:
    return "?" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _rounded(length: timedelta) -> str:
    return f"{max(length.total_seconds(), 0):.0f} s"


def _at(value: Any) -> datetime:
    """A time that is always there."""
    return cast("datetime", moment(value))


def _event(row: Row) -> Event:
    seq, epoch, kind, at, actor, details = row
    told = None if details is None else decode(details)
    return Event(seq, epoch, EventType(kind), _at(at), actor, told)


def _batch(row: Row) -> BatchSeen:
    id_, name, kind, created_at = row
    return BatchSeen(id_, name, kind, _at(created_at))


def _runner(row: Row) -> RunnerSeen:
    boot, name, host, pid, state, beat_at, lease_until, slots, knows, now = row
    known: Sequence[str] = decode(knows)
    return RunnerSeen(
        boot=boot,
        name=name,
        host=host,
        pid=pid,
        state=state,
        beat_at=_at(beat_at),
        lease_until=_at(lease_until),
        slots=slots,
        knows=list(known),
        expired=_at(lease_until) < _at(now),
    )


COUNT_JOBS = _sql("count_jobs")
GET_BATCH = _sql("get_batch")
JOB_ATTEMPTS = _sql("job_attempts")
JOB_EVENTS = _sql("job_events")
JOB_STEPS = _sql("job_steps")
LIST_BATCHES = _sql("list_batches")
LIST_JOBS = _sql("list_jobs")
LIST_RUNNERS = _sql("list_runners")
NOW = _sql("now")
