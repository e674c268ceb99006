"""Jobs as the document's `queue_jobs` has them, and its metrics, in total and by runner: sums that are exact at every instant."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from heapq import nlargest
from typing import Any, Final, NamedTuple

from retoma.apps.embeddings.model import CONFIGURATION, KIND, MEANINGS, STATUS, JobStatus
from retoma.apps.embeddings.store.rows import SQL
from retoma.db import Row, Transaction, moment, seconds_between
from retoma.engine.query.jobs import ids_of
from retoma.engine.rules.errors import NotFound
from retoma.words import say, stored

RUNNERS: Final = 20  # that did the last work
SHORTEST: Final = 1.0  # seconds of work from which a throughput is computed


@dataclass(frozen=True, slots=True)
class QueueJob:
    """A row of the document's table, as it was when it was read."""

    id: int
    jobType: str  # noqa: N815 — the document's names
    status: JobStatus
    attempts: int
    maxAttempts: int  # noqa: N815
    lockedBy: str | None  # noqa: N815
    lockedAt: datetime | None  # noqa: N815
    lockExpiresAt: datetime | None  # noqa: N815
    lastHeartbeatAt: datetime | None  # noqa: N815
    processingStartedAt: datetime | None  # noqa: N815
    processedAt: datetime | None  # noqa: N815
    createdAt: datetime | None  # noqa: N815
    runAt: datetime | None  # noqa: N815
    documentId: int  # noqa: N815
    errorCode: str | None  # noqa: N815
    correlationId: str | None  # noqa: N815


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """The document's own numbers. All claims are in one of these, at work, or were given back."""

    jobsClaimed: int = 0  # noqa: N815 — the document's names
    jobsCompleted: int = 0  # noqa: N815
    jobsFailed: int = 0  # noqa: N815
    jobsRetried: int = 0  # noqa: N815
    jobsRecovered: int = 0  # noqa: N815
    avgJobDurationMs: int = 0  # noqa: N815
    stuckJobCount: int = 0  # noqa: N815


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerThroughput:
    """What a runner has done since it started. `per_minute`: documents; None unless it is alive."""

    name: str
    boot: str
    state: str
    heartbeat_at: datetime | None
    done: int
    retried: int
    failed: int
    recovered: int
    average_seconds: float | None  # of a document
    per_minute: float | None


class Parked(NamedTuple):
    """Documents that wait for a person, by the code of what stopped them."""

    code: str
    documents: int
    message: str | None  # of the newest of them


def parked_by_code(tx: Transaction) -> list[Parked]:
    """The most first."""
    return [Parked(code or "", int(n), said) for code, n, said in tx.all(SQL.parked_by_code)]


def watch(tx: Transaction) -> dict[str, dict[str, Any]]:
    """An alert where documents wait until somebody puts the configuration right."""
    waiting = [each for each in parked_by_code(tx) if each.code in CONFIGURATION]
    if not waiting:
        return {}
    n = sum(each.documents for each in waiting)
    why = reduce(
        lambda some, more: say("{some}; {more}", some=some, more=more),
        [MEANINGS[each.code] for each in waiting],
    )
    if n == 1:
        text = say("1 document waits for configuration: {why}", why=why)
    else:
        text = say("{n} documents wait for configuration: {why}", n=n, why=why)
    return {"waiting_for_configuration": {**stored(text), "documents": n}}


def get(tx: Transaction, job: int) -> QueueJob:
    found = tx.one(SQL.get_queue_job, into=QueueJob, job=job)
    if found is None:
        raise NotFound(say("there is no job {job} of embeddings", job=job))
    return found


def list_jobs(
    tx: Transaction,
    *,
    n: int,
    status: JobStatus | None = None,
    worker: str | None = None,
    before: int | None = None,
) -> list[QueueJob]:
    """The newest first. By status they come by their states, each by the index that is short for it."""
    if worker is not None:
        held = tx.all(SQL.jobs_locked_by, into=int, worker=worker)
        jobs = [job for job in held if before is None or job < before][:n]
    else:
        states = (
            [None] if status is None else [s for s, told in STATUS.items() if told == status]
        )
        jobs = nlargest(
            n,
            (
                job
                for state in states
                for job in ids_of(
                    tx, state=state, kind=KIND, batch=None, before=before, limit=n
                )
            ),
        )
    return [
        each
        for each in these(tx, jobs)
        if status is None or worker is None or each.status == status
    ]


def these(tx: Transaction, jobs: Sequence[int]) -> list[QueueJob]:
    """The newest first."""
    return tx.all(SQL.queue_jobs_of, into=QueueJob, jobs=json.dumps([*jobs]))


def stuck(tx: Transaction) -> list[int]:
    """Jobs in the hands of whoever's lease is over."""
    return tx.all(SQL.stuck_jobs, into=int)


def next_jobs(tx: Transaction, n: int) -> list[int]:
    """Whose turn it is."""
    return tx.all(SQL.next_jobs, into=int, n=n)


def text_of(tx: Transaction, job: int) -> dict[str, Any]:
    """What the document of a job is."""
    row = tx.one(SQL.text_of_job, job=job)
    if row is None:
        raise NotFound(say("the document of job {job} was deleted", job=job))
    return dict(zip(("document", "collection", "name", "text"), row, strict=True))


def metrics(tx: Transaction, worker: str | None = None) -> WorkerMetrics:
    """Of all runners, or of those of this name."""
    if worker is None:
        return _summed(tx.all(SQL.sum_events, kind=KIND), len(stuck(tx)))
    return per_worker(tx).get(worker, WorkerMetrics())


def per_worker(tx: Transaction) -> dict[str, WorkerMetrics]:
    """By the names of runners; of one that ended long ago nothing is known any more."""
    late = Counter(each.lockedBy for each in these(tx, stuck(tx)))
    found: dict[str, list[Any]] = {}
    for name, *row in tx.all(SQL.sum_workers, kind=KIND):
        found.setdefault(name, []).append(row)
    return {name: _summed(rows, late[name]) for name, rows in sorted(found.items())}


def list_runner_throughput(tx: Transaction) -> list[RunnerThroughput]:
    """What each runner has done, those that sent a heartbeat last first."""
    return [
        _read_throughput(row) for row in tx.all(SQL.runner_throughput, kind=KIND, n=RUNNERS)
    ]


def _read_throughput(row: Row) -> RunnerThroughput:
    name, boot, state, since, beat, now, late, done, retried, failed, recovered, ms = row
    lived = seconds_between(since, now)
    seconds = None
    if state == "alive" and not late and lived is not None:
        seconds = max(lived, SHORTEST)
    return RunnerThroughput(
        name=name,
        boot=boot,
        state="silent" if late and state in ("alive", "leaving") else state,
        heartbeat_at=None if beat is None else moment(beat),
        done=int(done),
        retried=int(retried),
        failed=int(failed),
        recovered=int(recovered),
        average_seconds=float(ms) / 1000 / int(done) if done else None,
        per_minute=None if seconds is None else int(done) * 60 / seconds,
    )


def _summed(rows: Sequence[Any], late: int) -> WorkerMetrics:
    n = {event: int(count) for event, count, _ in rows}
    ms = {event: float(spent or 0) for event, _, spent in rows}
    done = n.get("done", 0)
    return WorkerMetrics(
        jobsClaimed=n.get("claimed", 0),
        jobsCompleted=done + n.get("skipped", 0),
        jobsFailed=n.get("buried", 0) + n.get("poisoned", 0),
        jobsRetried=n.get("failed", 0),
        jobsRecovered=n.get("lost", 0),
        avgJobDurationMs=round(ms.get("done", 0.0) / done) if done else 0,
        stuckJobCount=late,
    )
