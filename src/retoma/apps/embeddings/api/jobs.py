"""The document's queue: jobs by its own names, the DLQ and its replay, its metrics."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

from fastapi import Query
from pydantic import Field

from retoma.apps.embeddings import service
from retoma.apps.embeddings.api.wire import JobId, routes
from retoma.apps.embeddings.model import JobStatus
from retoma.apps.embeddings.store.jobs import WorkerMetrics
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
    found = await service.list_jobs(
        house.retoma, status=status, worker=locked_by, before=before, limit=limit + 1
    )
    shown = [QueueJobShown.model_validate(each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.get("/api/embeddings/jobs/{job}")
async def get_job(job: JobId, _: Viewer, house: AHouse) -> QueueJobShown:
    """One job, as the document's table has it; `/api/jobs/{job}` tells all that happened to it."""
    return QueueJobShown.model_validate(await service.get_job(house.retoma, job))


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
    dead = await service.list_dead_jobs(house.retoma, code=code, before=before, limit=limit)
    shown = [DeadShown(**asdict(job), message=message) for job, message in dead]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(dead) == limit else None))


@routes.post("/api/embeddings/dlq/{job}/replay")
async def replay(job: JobId, who: Operator, house: AHouse) -> ReplayedShown:
    """A new generation, with all its attempts; chunks that have their vectors are not embedded again.
    409 for a job that has not failed for good."""
    return ReplayedShown.model_validate(
        await service.replay_job(house.retoma, job, actor=who.name)
    )


@routes.get("/api/embeddings/metrics")
async def get_metrics(_: Viewer, house: AHouse) -> MetricsShown:
    """`jobsClaimed` and the others, as the document lists them: equal to the fold of events."""

    return MetricsShown.model_validate(await service.get_metrics(house.retoma))
