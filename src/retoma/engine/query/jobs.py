"""Jobs, a page at a time, and everything that is known of one."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from typing import Any

from retoma.db import Json, Transaction
from retoma.engine.query.counters import count_kinds
from retoma.engine.query.page import PAGE, SQL, checked
from retoma.engine.rules.events import EventType
from retoma.engine.rules.job import Job
from retoma.engine.rules.states import State
from retoma.engine.store import get_job, now

__all__ = [
    "PAGE",
    "AttemptSeen",
    "Event",
    "JobSeen",
    "StepSeen",
    "ids_of",
    "job_attempts",
    "job_events",
    "job_steps",
    "list_jobs",
    "see_job",
]


# Few enough to be sorted at once. Where more wait, the newest of all jobs are among them: the
# oldest are taken first.
FEW = 10_000
READ = 4_000  # characters of a step's value that somebody reads on a page


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a job's timeline."""

    seq: int
    epoch: int | None
    type: EventType
    at: datetime
    actor: str | None
    details: Json


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
    cost: Json = None  # its charges; where it was reused, those it spared, and from which job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSeen:
    """One job at one instant, with the newest of what it has: the newest first."""

    job: Job
    now: datetime
    events: list[Event]
    attempts: list[AttemptSeen]
    steps: list[StepSeen]  # their values cut to READ characters

    @property
    def older(self) -> bool:
        """Whether its timeline began before what is seen of it."""
        return bool(self.events) and self.events[-1].seq > 1


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
    asked = {"before": before, "limit": checked(limit, "jobs"), "batch": batch}
    if state is None and kind is None:
        return tx.all(SQL.list_jobs, into=Job, state=None, kind=None, **asked)
    found = ids_of(tx, state=state, kind=kind, batch=batch, before=before, limit=limit)
    return tx.all(SQL.jobs_by_id, into=Job, ids=json.dumps(found))


def ids_of(
    tx: Transaction,
    *,
    state: State | None,
    kind: str | None,
    batch: int | None,
    before: int | None,
    limit: int,
) -> list[int]:
    """The same, the ids alone, and as many as somebody may want to look at."""
    asked = {"before": before, "limit": limit, "batch": batch}
    if state is None and kind is None:
        return tx.all(SQL.list_ids, into=int, state=None, kind=None, **asked)
    # Each state by the way that is short for it, and only where the counters say there are some.
    counted = _counted(tx, kind, batch)
    wanted = list(State) if state is None else [state]
    found = (
        id_
        for each in wanted
        if any(each in states for states in counted.values())
        for id_ in _of_state(tx, each, kind, counted, asked)
    )
    return nlargest(limit, found)


def _counted(
    tx: Transaction, kind: str | None, batch: int | None
) -> dict[str, dict[State, int]]:
    counted = count_kinds(tx, batch)
    return counted if kind is None else {kind: counted.get(kind, {})}


def _of_state(
    tx: Transaction,
    state: State,
    kind: str | None,
    counted: dict[str, dict[State, int]],
    asked: dict[str, Any],
) -> Iterator[int]:
    """The ids of one state."""
    match state:
        case State.RUNNING:
            yield from tx.all(SQL.list_running, into=int, kind=kind, **asked)
        case State.WAITING if sum(states.get(state, 0) for states in counted.values()) <= FEW:
            yield from tx.all(SQL.list_waiting, into=int, kind=kind, **asked)
        case State.DONE if kind is not None and asked["batch"] is None:
            page = {"before": asked["before"], "limit": asked["limit"]}
            yield from tx.all(SQL.list_done, into=int, kind=kind, **page)
        case State.WAITING | State.DONE:
            yield from tx.all(SQL.list_ids, into=int, state=state, kind=kind, **asked)
        case State.PARKED | State.SKIPPED | State.DEAD | State.CANCELED:
            if asked["batch"] is not None:
                yield from tx.all(
                    SQL.list_batch_ends, into=int, state=state, kind=kind, **asked
                )
                return
            for each, states in counted.items():
                if state in states:
                    yield from tx.all(
                        SQL.list_ends,
                        into=int,
                        kind=each,
                        state=state,
                        before=asked["before"],
                        limit=asked["limit"],
                    )


def job_events(
    tx: Transaction, job: int, *, after: int = 0, limit: int | None = None
) -> list[Event]:
    """The timeline of a job, from the beginning or after a line of it; all, or so many lines."""
    return tx.all(SQL.job_events, into=Event, job=job, after=after, limit=limit)


def job_attempts(tx: Transaction, job: int) -> list[AttemptSeen]:
    return tx.all(SQL.job_attempts, into=AttemptSeen, job=job)


def job_steps(tx: Transaction, job: int) -> list[StepSeen]:
    return tx.all(SQL.job_steps, into=StepSeen, job=job)


def see_job(tx: Transaction, job: int, *, before: int | None, limit: int) -> JobSeen:
    """Everything that is worth a look, in one; `before`: the timeline before that line of it."""
    most = checked(limit, "events")
    return JobSeen(
        job=get_job(tx, job),
        now=now(tx),
        events=tx.all(SQL.last_events, into=Event, job=job, before=before, limit=most),
        attempts=tx.all(SQL.last_attempts, into=AttemptSeen, job=job, limit=most),
        steps=tx.all(SQL.last_steps, into=StepSeen, job=job, most=READ, limit=most),
    )
