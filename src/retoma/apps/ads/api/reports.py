"""The audit reports of the document (§10.3) over the API, each also as a table for a spreadsheet."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, TypeVar

from fastapi import Query, Response
from pydantic import Field

from retoma.apps.ads.api.wire import MissionId, routes
from retoma.apps.ads.service import missions, reports
from retoma.codec import encode
from retoma.web import AHouse, Viewer
from retoma.web.files import csv_file, csv_of
from retoma.web.wire import Shown

T = TypeVar("T")

Hours = Annotated[int, Query(ge=1, le=2160, description="How many hours back.")]
Days = Annotated[int, Query(ge=1, le=90, description="How many days back.")]
CodeOf = Annotated[
    str | None, Query(max_length=20, description="Only failures with this code.")
]


class FailureShown(Shown):
    """A mission that failed: why then, and what it is now."""

    id: str
    status: str
    error_code: str | None
    error_message: str | None
    retry_count: int
    failed_at: datetime
    worker_id: str | None
    proxy_used: str | None


class PerformanceShown(Shown):
    """What a worker brought home."""

    worker_id: str
    worker_name: str
    completed_count: int
    empty_count: int
    failed_count: int
    avg_duration_ms: float | None
    max_duration_ms: float | None
    ads_count: int


class TroubleShown(Shown):
    """How a proxy fares."""

    proxy_id: str
    name: str
    host: str
    port: int | None
    fail_count: Annotated[int, Field(description="Failures in a row.")]
    active: bool
    session_failures: int
    rotations: int
    last_failed_at: datetime | None


@routes.get(
    "/api/missions/{mission}/timeline.csv",
    response_class=Response,
    responses=csv_of("what happened to a mission"),
)
async def timeline_csv(mission: MissionId, _: Viewer, house: AHouse) -> Response:
    """What happened to it, as a table for a spreadsheet."""
    happened = await missions.get_timeline(house.retoma, mission)
    rows = [(each.timestamp, each.event, encode(each.details)) for each in happened]
    return csv_file(f"{_word(mission)}.csv", ("timestamp", "event", "details"), rows)


@routes.get("/api/ads/reports/failures")
async def failures(
    _: Viewer, house: AHouse, hours: Hours = 24, code: CodeOf = None
) -> list[FailureShown]:
    """Missions that failed in the last 24 hours, or in others (§10.3), the newest first."""
    return _shown(FailureShown, await reports.list_failures(house.retoma, hours, code))


@routes.get(
    "/api/ads/reports/failures.csv", response_class=Response, responses=csv_of("failures")
)
async def failures_csv(
    _: Viewer, house: AHouse, hours: Hours = 24, code: CodeOf = None
) -> Response:
    """The same as a table for a spreadsheet."""
    return _table(
        "failures.csv", FailureShown, await reports.list_failures(house.retoma, hours, code)
    )


@routes.get("/api/ads/reports/workers")
async def workers(_: Viewer, house: AHouse, days: Days = 7) -> list[PerformanceShown]:
    """Performance per worker in the last 7 days, or in others (§10.3)."""
    return _shown(PerformanceShown, await reports.list_worker_results(house.retoma, days))


@routes.get(
    "/api/ads/reports/workers.csv", response_class=Response, responses=csv_of("performance")
)
async def workers_csv(_: Viewer, house: AHouse, days: Days = 7) -> Response:
    """The same as a table for a spreadsheet."""
    return _table(
        "workers.csv", PerformanceShown, await reports.list_worker_results(house.retoma, days)
    )


@routes.get("/api/ads/reports/proxies")
async def proxies(_: Viewer, house: AHouse, days: Days = 7) -> list[TroubleShown]:
    """Problem proxies of the last 7 days, or of others (§10.3), the worst first."""
    return _shown(TroubleShown, await reports.list_proxy_failures(house.retoma, days))


@routes.get(
    "/api/ads/reports/proxies.csv", response_class=Response, responses=csv_of("proxies")
)
async def proxies_csv(_: Viewer, house: AHouse, days: Days = 7) -> Response:
    """The same as a table for a spreadsheet."""
    return _table(
        "proxies.csv", TroubleShown, await reports.list_proxy_failures(house.retoma, days)
    )


def _shown(shape: type[T], told: Iterable[Any]) -> list[T]:
    return [shape.model_validate(each) for each in told]  # type: ignore[attr-defined]


def _table(name: str, shape: type[Shown], told: Iterable[Any]) -> Response:
    columns = list(shape.model_fields)
    return csv_file(name, columns, ([getattr(each, name) for name in columns] for each in told))


def _word(mission: str) -> str:
    """A name of a file, of whatever a mission is called."""
    return "".join(each if each.isascii() and each.isalnum() else "-" for each in mission)
