"""`/api/runners`, `/api/schedules`, `/api/events`: who runs jobs, what is submitted by the clock, who
did what."""

from collections.abc import AsyncIterator, Sequence
from operator import attrgetter
from typing import Annotated, Any

from fastapi import Path, Query, Response

from retoma.engine.rules.job import Job
from retoma.services import runners, schedules
from retoma.services.audit import PAGE, AuditLine, AuditSearch, Spot
from retoma.services.schedules import ScheduleSeen
from retoma.web.asked import WhichEvents, audit_spot
from retoma.web.cursor import Cursor, turned
from retoma.web.files import csv_of, listed_file
from retoma.web.house import AHouse, House
from retoma.web.replay import asked, written
from retoma.web.route import router
from retoma.web.sign_in import Admin, Operator, Viewer
from retoma.web.wire import (
    AuditShown,
    DrainShown,
    JobShown,
    Limit,
    NextPage,
    Once,
    PageOf,
    RunnerShown,
    audit_shown,
    job_shown,
)

routes = router("work")

BootId = Annotated[
    str,
    Path(pattern=r"^[!-.0-~]{1,200}$", description="The boot of a runner, as it is listed."),
]
EXPORTED = 10_000  # lines of an export
ScheduleName = Annotated[
    str, Path(min_length=1, max_length=200, description="The name of a schedule.")
]


@routes.get("/api/runners")
async def list_runners(
    _: Viewer,
    house: AHouse,
    every: Annotated[bool, Query(description="Those that are gone or lost too.")] = False,
) -> list[RunnerShown]:
    """Who runs jobs: slots in use, last beat, kinds it knows; the 200 that beat last."""
    seen = await house.retoma.runners.list()
    return [
        RunnerShown.model_validate(each)
        for each in seen
        if every or each.state in ("alive", "leaving")
    ]


@routes.post("/api/runners/{boot}/drain")
async def drain_runner(boot: BootId, who: Admin, house: AHouse) -> DrainShown:
    """Ask a runner to leave as on SIGTERM: it claims nothing more, finishes or gives back what it
    has, and its process ends. Asked twice it answers the same."""
    return DrainShown.model_validate(
        await runners.drain_runner(house.retoma, boot, actor=who.name)
    )


# — schedules —


@routes.get("/api/schedules")
async def list_schedules(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[ScheduleSeen]:
    """What is submitted by the clock; by their names."""
    seen = await schedules.list_schedules(house.retoma)
    page, following = turned(Cursor("schedules", None), cursor, limit, seen, attrgetter("name"))
    return PageOf(items=page, next=following)


@routes.post(
    "/api/schedules/{name:path}/run",
    status_code=201,
    responses={
        200: {"model": JobShown, "description": "It was run already, under this key."},
        201: {"headers": {"Location": {"schema": {"type": "string"}}}},
    },
)
async def run_schedule(
    name: ScheduleName, who: Operator, house: AHouse, response: Response, key: Once = None
) -> JobShown:
    """One run now, beside its ticks."""

    def write(tx: Any) -> Job:
        made: Job = tx.run_schedule(name, actor=who.name)
        return made

    ask = asked(key, who, f"run_schedule {name}", None)
    shown, first = await written(house, ask, write, job_shown, JobShown)
    response.headers["Location"] = f"/api/jobs/{shown.id}"
    if not first:
        response.status_code = 200
    return shown


@routes.post("/api/schedules/{name:path}/pause")
async def pause_schedule(name: ScheduleName, who: Operator, house: AHouse) -> ScheduleSeen:
    """It ticks no more until it is unpaused."""
    return await schedules.pause_schedule(house.retoma, name, actor=who.name)


@routes.post("/api/schedules/{name:path}/unpause")
async def unpause_schedule(name: ScheduleName, who: Operator, house: AHouse) -> ScheduleSeen:
    """It goes on with its next tick; those of the pause are not made up for."""
    return await schedules.unpause_schedule(house.retoma, name, actor=who.name)


# — the audit log —


@routes.get("/api/events")
async def search_events(
    _: Viewer,
    house: AHouse,
    search: WhichEvents,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[AuditShown]:
    """Who did what, newest first; what was done to people, keys and sessions is told to admins. A page may be short, or empty, and still have a next one."""
    stamp = Cursor("audit", search)
    page = await house.retoma.audit(search, after=audit_spot(stamp, cursor), limit=limit)
    shown = [audit_shown(each) for each in page.lines]
    if page.next is None:
        return PageOf(items=shown)
    at, *rest = page.next
    return PageOf(items=shown, next=stamp.write(at.isoformat(), *rest))


@routes.get("/api/events.csv", response_class=Response, responses=csv_of("what people did"))
async def export_events(
    _: Viewer,
    house: AHouse,
    search: WhichEvents,
) -> Response:
    """The newest 10,000 as a table for a spreadsheet."""
    columns = ("at", "actor", "verb", "subject", "details")
    return await listed_file(house, "csv", "events", columns, _newest(house, search))


async def _newest(house: House, search: AuditSearch) -> AsyncIterator[Sequence[AuditLine]]:
    after: Spot | None = None
    for _ in range(EXPORTED // PAGE):
        page = await house.retoma.audit(search, after=after, limit=PAGE)
        yield page.lines
        after = page.next
        if after is None:
            return
