"""The document's queue: jobs by its own names, the DLQ and its replay, its metrics."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any

from fastapi import Query
from pydantic import Field

from retoma.apps.embeddings import store
from retoma.apps.embeddings.api.how import JobId, read, routes
from retoma.apps.embeddings.model import KIND, JobStatus
from retoma.apps.embeddings.store.jobs import WorkerMetrics
from retoma.db import Transaction
from retoma.web import AHouse, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.wire import Limit, NextPage, PageOf, Shown


class QueueJobShown(Shown):
    """A row of the document's `queue_jobs`."""

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


class DeadShown(QueueJobShown):
    """One of the DLQ, and why."""

    message: str = Field(description="What its last attempt said.")


class MetricsShown(Shown):
    """The document's numbers, of all workers and of each."""

    total: WorkerMetrics
    workers: dict[str, WorkerMetrics]


class ReplayedShown(Shown):
    id: int
    generation: int = Field(
        description="A replay is a new one: all its attempts are before it."
    )


@routes.get("/api/embeddings/jobs")
async def list_jobs(
    _: Viewer,
    house: AHouse,
    status: Annotated[JobStatus | None, Query(description="Only in this status.")] = None,
    locked_by: Annotated[
        str | None, Query(alias="lockedBy", max_length=200, description="Only of this worker.")
    ] = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[QueueJobShown]:
    """The newest first."""
    stamp = Cursor("embeddings_jobs", f"{status} {locked_by}")
    [before] = stamp.read(cursor, int) or [None]
    asked: dict[str, Any] = {"status": status, "worker": locked_by, "before": before}
    found = await read(house, partial(store.jobs.list_jobs, n=limit + 1, **asked))
    shown = [QueueJobShown(**each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.get("/api/embeddings/jobs/{job}")
async def get_job(job: JobId, _: Viewer, house: AHouse) -> QueueJobShown:
    """One job, as the document's table has it; `/api/jobs/{job}` tells all that happened to it."""
    return QueueJobShown(**await read(house, partial(store.jobs.get, job=job)))


@routes.get("/api/embeddings/dlq")
async def list_dead(
    _: Viewer,
    house: AHouse,
    code: Annotated[str | None, Query(max_length=50, description="Only of this code.")] = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[DeadShown]:
    """Jobs that failed for good and that nobody has discarded, the newest first."""
    stamp = Cursor("embeddings_dlq", code)
    [before] = stamp.read(cursor, int) or [None]
    dead = await house.retoma.dead(kind=KIND, code=code, before=before, limit=limit)
    causes = await house.retoma.dead_causes([each.id for each in dead])
    found = await read(house, partial(store.jobs.these, jobs=[each.id for each in dead]))
    said = {job: cause.message for job, cause in causes.items()}
    shown = [DeadShown(**each, message=said.get(each["id"], "")) for each in found]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(dead) == limit else None))


@routes.post("/api/embeddings/dlq/{job}/replay")
async def replay(job: JobId, who: Operator, house: AHouse) -> ReplayedShown:
    """A new generation, with all its attempts; chunks that have their vectors are not embedded again.
    409 for a job that has not failed for good."""
    await read(house, partial(store.jobs.get, job=job))
    again = await house.retoma.retry(job, only_dead=True, actor=who.name)
    return ReplayedShown(id=again.id, generation=again.generation)


@routes.get("/api/embeddings/metrics")
async def get_metrics(_: Viewer, house: AHouse) -> MetricsShown:
    """`jobsClaimed` and the others, as the document lists them: equal to the fold of events."""

    def look(tx: Transaction) -> tuple[WorkerMetrics, dict[str, WorkerMetrics]]:
        return store.jobs.metrics(tx), store.jobs.per_worker(tx)

    total, workers = await read(house, look)
    return MetricsShown(total=total, workers=workers)
