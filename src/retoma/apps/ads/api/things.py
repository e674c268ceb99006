"""Workers, proxies and writers over the API. Keys and passwords go in and never come out."""

from datetime import datetime
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field

from retoma.apps.ads.api.wire import Made, ThingId, routes
from retoma.apps.ads.model import WorkerStatus
from retoma.apps.ads.service import resources
from retoma.apps.ads.service.inputs import (
    ChangedProxy,
    ChangedWorker,
    ChangedWriter,
    NewProxy,
    NewWorker,
    NewWriter,
)
from retoma.apps.ads.store import RECORDS, ProxyRecord, Sort, WorkerRecord, WriterRecord
from retoma.secret import STARS
from retoma.web import Admin, AHouse, House, Viewer
from retoma.web.cursor import Cursor
from retoma.web.wire import Limit, NextPage, PageOf, Shown

S = TypeVar("S", bound=Shown)
Hidden = AfterValidator(lambda value: None if value is None else STARS)


class Tested(Shown):
    """What people operate, and how its last health test went."""

    id: str
    name: str
    active: bool
    last_test_at: datetime | None
    last_test_ok: bool | None
    last_test_ms: int | None
    last_test_error: str | None


class WorkerShown(Tested):
    """A worker; its key is nobody's to see. `note`: what keeps its session from ending;
    `silent_since`: nobody has heard of its session since."""

    url: str
    storage_domain: str | None
    status: WorkerStatus
    session_count: int
    current_mission_id: str | None
    current_proxy_id: str | None
    rests_until: datetime | None
    session: int | None
    session_job: int | None
    session_state: str | None
    note: str | None
    silent_since: datetime | None


class ProxyShown(Tested):
    """A proxy; its user name and its password are nobody's to see. `reason`: why it is active, or is not."""

    host: str
    port: int | None
    username: Annotated[str | None, Hidden] = Field(description="Stars, where it has one.")
    vendor: str
    in_use_by_worker_id: str | None
    fail_count: int
    reason: str | None
    last_used_at: datetime | None


class WriterShown(Tested):
    """A writer; its key is nobody's to see. `away_since`: nobody sends to it until it is healthy."""

    url: str
    away_since: datetime | None
    away_reason: str | None


# — workers —


@routes.get("/api/workers")
async def list_workers(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[WorkerShown]:
    """Workers and what each is doing, by their ids."""
    return await _page(house, Sort.WORKERS, WorkerShown, cursor, limit)


@routes.post("/api/workers", status_code=201, responses={200: {"model": Made}})
async def add_worker(body: NewWorker, who: Admin, house: AHouse) -> Made:
    """A worker; without a storage_domain it takes nothing up."""
    return Made(ids=[await resources.add_resource(house.retoma, body, actor=who.name)])


@routes.get("/api/workers/{id}")
async def get_worker(id_: ThingId, _: Viewer, house: AHouse) -> WorkerShown:
    """One worker."""
    return await show_worker(house, id_)


@routes.patch("/api/workers/{id}")
async def change_worker(
    id_: ThingId, body: ChangedWorker, who: Admin, house: AHouse
) -> WorkerShown:
    """Change a worker. Its address only while it has no session; its key is never shown."""
    await resources.change_resource(house.retoma, Sort.WORKERS, id_, body, actor=who.name)
    return await show_worker(house, id_)


# — proxies —


@routes.get("/api/proxies")
async def list_proxies(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[ProxyShown]:
    """Proxies, who uses each, how it fares, by their ids."""
    return await _page(house, Sort.PROXIES, ProxyShown, cursor, limit)


@routes.post("/api/proxies", status_code=201, responses={200: {"model": Made}})
async def add_proxy(body: NewProxy, who: Admin, house: AHouse) -> Made:
    """A proxy; without a name it is called by its host and port."""
    return Made(ids=[await resources.add_resource(house.retoma, body, actor=who.name)])


@routes.get("/api/proxies/{id}")
async def get_proxy(id_: ThingId, _: Viewer, house: AHouse) -> ProxyShown:
    """One proxy."""
    return ProxyShown.model_validate(await resources.get_record(house.retoma, ProxyRecord, id_))


@routes.patch("/api/proxies/{id}")
async def change_proxy(
    id_: ThingId, body: ChangedProxy, who: Admin, house: AHouse
) -> ProxyShown:
    """Change a proxy. Its address only while no session goes out by it."""
    await resources.change_resource(house.retoma, Sort.PROXIES, id_, body, actor=who.name)
    return ProxyShown.model_validate(await resources.get_record(house.retoma, ProxyRecord, id_))


# — writers —


@routes.get("/api/writers")
async def list_writers(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[WriterShown]:
    """Writers, by their ids."""
    return await _page(house, Sort.WRITERS, WriterShown, cursor, limit)


@routes.post("/api/writers", status_code=201, responses={200: {"model": Made}})
async def add_writer(body: NewWriter, who: Admin, house: AHouse) -> Made:
    """A writer."""
    return Made(ids=[await resources.add_resource(house.retoma, body, actor=who.name)])


@routes.get("/api/writers/{id}")
async def get_writer(id_: ThingId, _: Viewer, house: AHouse) -> WriterShown:
    """One writer."""
    return WriterShown.model_validate(
        await resources.get_record(house.retoma, WriterRecord, id_)
    )


@routes.patch("/api/writers/{id}")
async def change_writer(
    id_: ThingId, body: ChangedWriter, who: Admin, house: AHouse
) -> WriterShown:
    """Change a writer. Its address only while it stores nothing."""
    await resources.change_resource(house.retoma, Sort.WRITERS, id_, body, actor=who.name)
    return WriterShown.model_validate(
        await resources.get_record(house.retoma, WriterRecord, id_)
    )


async def show_worker(house: House, id_: str) -> WorkerShown:
    found = await resources.get_record(house.retoma, WorkerRecord, id_)
    return WorkerShown.model_validate(found)


async def _page(
    house: House, sort: Sort, shape: type[S], cursor: str | None, limit: int
) -> PageOf[S]:
    """A page by id, with the cursor of the next."""
    stamp = Cursor(sort, "")
    [after] = stamp.read(cursor, str) or [""]
    found = await resources.list_records(
        house.retoma, RECORDS[sort], after=after, limit=limit + 1
    )
    last = found[limit - 1].id if len(found) > limit else None
    items = [shape.model_validate(each) for each in found[:limit]]
    return PageOf(items=items, next=stamp.write(last))
