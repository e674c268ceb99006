"""Workers, proxies and writers over the API. Keys and passwords go in and never come out."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, urlsplit

from fastapi import Path
from pydantic import AfterValidator, Field, StrictInt, StrictStr, model_validator

from retoma.apps.ads import store
from retoma.apps.ads.api.how import (
    Made,
    at_told,
    may_go,
    may_stand,
    named,
    read,
    routes,
    secrets_by,
    secrets_of,
    tools_of,
)
from retoma.apps.ads.model import WorkerStatus
from retoma.apps.ads.store import Sort
from retoma.db import Row
from retoma.engine.rules.errors import NotFound
from retoma.secret import STARS, Secret
from retoma.toolkit.tools import Tools
from retoma.web import Admin, AHouse, House, Viewer
from retoma.web.cursor import Cursor
from retoma.web.wire import Body, Limit, Name, NextPage, PageOf, Shown
from retoma.words import Said, say

ALL: Final = 1_000  # of each sort on one screen
HOST: Final = r"^[A-Za-z0-9.:_-]+$"


def _whole_url(value: str) -> str:
    parts = _parts(value, say("is no address such as https://worker.example.org"))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ValueError(say("is no address such as https://worker.example.org"))
    return value.rstrip("/")


def _parts(address: str, why: Said) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:  # such as a bracket that nothing closes
        raise ValueError(why) from None


def _host(value: str) -> str:
    if re.fullmatch(HOST, value) is None:
        raise ValueError(say("is no host such as proxy.example.org"))
    return value


def _domain(value: str) -> str:
    parts = _parts(f"//{value}", say("is no host, or host:port"))
    if parts.netloc != value or not parts.hostname or "@" in value or not value.isprintable():
        raise ValueError(say("is no host, or host:port"))
    return value


Url = Annotated[StrictStr, Field(max_length=500), AfterValidator(_whole_url)]
Domain = Annotated[StrictStr, Field(min_length=1, max_length=255), AfterValidator(_domain)]
Key = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Host = Annotated[
    StrictStr,
    Field(min_length=1, max_length=200, json_schema_extra={"pattern": HOST}),
    AfterValidator(_host),
]
Port = Annotated[StrictInt, Field(ge=1, le=65535)]
Word = Annotated[StrictStr, Field(min_length=1, max_length=100)]
Vendor = Annotated[StrictStr, Field(max_length=100)]
ThingId = Annotated[
    str, Path(alias="id", min_length=1, max_length=100, description="Of one of them.")
]


# — what is said —


class NewWorker(Body):
    """A remote scraping service."""

    name: Name
    url: Url
    api_key: Key
    storage_domain: Domain | None = None


class NewProxy(Body):
    """By which sessions go out."""

    host: Host
    port: Port | None = None
    name: Name | None = None
    username: Word | None = None
    password: Word | None = None
    vendor: Vendor = ""


class NewWriter(Body):
    """A service that stores ads."""

    name: Name
    url: Url
    api_key: Key


class Changed(Body):
    """What is to be other than it is; what is not named stays."""

    @model_validator(mode="after")
    def _says_something(self) -> "Changed":
        empty = sorted(
            name for name in self.model_fields_set - NULLABLE if getattr(self, name) is None
        )
        if empty:
            raise ValueError(say("{names}: cannot be nothing", names=", ".join(empty)))
        return self

    @property
    def told(self) -> dict[str, Any]:
        """What was named; secrets as such."""
        given = self.model_dump(include=self.model_fields_set)
        return {name: _sealed(name, value) for name, value in given.items()}


NULLABLE: Final = {"storage_domain", "port", "username"}
SECRETS: Final = {"api_key", "password"}


def _sealed(name: str, value: Any) -> Any:
    return Secret(value) if name in SECRETS else value


class ChangedWorker(Changed):
    """What is to be other of a worker. Its address only while it has no session."""

    name: Name | None = None
    url: Url | None = None
    api_key: Key | None = None
    storage_domain: Domain | None = None


class ChangedProxy(Changed):
    """What is to be other of a proxy. Its address only while no session goes out by it."""

    host: Host | None = None
    port: Port | None = None
    name: Name | None = None
    username: Word | None = None
    password: Word | None = None
    vendor: Vendor | None = None


class ChangedWriter(Changed):
    """What is to be other of a writer. Its address only while it stores nothing."""

    name: Name | None = None
    url: Url | None = None
    api_key: Key | None = None


# — what is told —


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
    username: str | None = Field(description="Stars, where it has one.")
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


LAST: Final = ("last_test_at", "last_test_ok", "last_test_ms", "last_test_error")
COLUMNS: Final[Mapping[Sort, tuple[str, ...]]] = {
    Sort.WORKERS: (
        *("id", "name", "url", "storage_domain", "status", "session_count"),
        *("current_mission_id", "current_proxy_id", "active", *LAST, "rests_until"),
        *("session", "session_job", "session_state", "note", "silent_since"),
    ),
    Sort.PROXIES: (
        *("id", "name", "host", "port", "username", "vendor", "active"),
        *("in_use_by_worker_id", "fail_count", "reason", "last_used_at", *LAST),
    ),
    Sort.WRITERS: ("id", "name", "url", "active", *LAST, "away_since", "away_reason"),
}
LISTS: Final = {
    Sort.WORKERS: store.LIST_WORKERS,
    Sort.PROXIES: store.LIST_PROXIES,
    Sort.WRITERS: store.LIST_WRITERS,
}
TIMES: Final = ("last_test_at", "rests_until", "last_used_at", "silent_since", "away_since")


def told(sort: Sort, row: Row) -> dict[str, Any]:
    found = named(COLUMNS[sort], row)
    if found.get("username") is not None:
        found["username"] = STARS
    times = {name: at_told(found[name]) for name in TIMES if found.get(name) is not None}
    return {**found, **times}


async def listed(
    house: House | Tools, sort: Sort, *, after: str = "", id_: str | None = None, n: int = ALL
) -> list[dict[str, Any]]:
    """Those after one by their ids, or the one that is named."""
    rows = await read(house, lambda tx: tx.all(LISTS[sort], after=after, id=id_, n=n))
    return [told(sort, row) for row in rows]


async def page_of(
    house: House, sort: Sort, cursor: str | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """A page, and where the next begins."""
    stamp = Cursor(sort, "")
    [after] = stamp.read(cursor, str) or [""]
    found = await listed(house, sort, after=after, n=limit + 1)
    last = found[limit - 1]["id"] if len(found) > limit else None
    return found[:limit], stamp.write(last)


async def one_of(house: House | Tools, sort: Sort, id_: str) -> dict[str, Any]:
    found = await listed(house, sort, id_=id_)
    if not found:
        raise NotFound(say("there is no {id}", id=id_))
    return found[0]


async def workers_shown(house: House) -> list[WorkerShown]:
    return [WorkerShown(**each) for each in await listed(house, Sort.WORKERS)]


async def proxies_shown(house: House) -> list[ProxyShown]:
    return [ProxyShown(**each) for each in await listed(house, Sort.PROXIES)]


async def writers_shown(house: House) -> list[WriterShown]:
    return [WriterShown(**each) for each in await listed(house, Sort.WRITERS)]


# — workers —


@routes.get("/api/workers")
async def list_workers(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[WorkerShown]:
    """Workers and what each is doing, by their ids."""
    found, following = await page_of(house, Sort.WORKERS, cursor, limit)
    return PageOf(items=[WorkerShown(**each) for each in found], next=following)


@routes.post("/api/workers", status_code=201)
async def add_worker(body: NewWorker, who: Admin, house: AHouse) -> Made:
    """A worker; without a storage_domain it takes nothing up."""
    await may_go(tools_of(house), "ads worker", body.url)
    secrets = await secrets_of(house, who.name)
    given: dict[str, Any] = {**body.model_dump(), "api_key": Secret(body.api_key)}
    id_ = await house.retoma.write(lambda tx: store.add_worker(tx, secrets, **given))
    return Made(ids=[id_])


@routes.get("/api/workers/{id}")
async def get_worker(id_: ThingId, _: Viewer, house: AHouse) -> WorkerShown:
    """One worker."""
    return WorkerShown(**await one_of(house, Sort.WORKERS, id_))


@routes.patch("/api/workers/{id}")
async def change_worker(
    id_: ThingId, body: ChangedWorker, who: Admin, house: AHouse
) -> WorkerShown:
    """Change a worker. Its address only while it has no session; its key is never shown."""
    await change(tools_of(house), Sort.WORKERS, id_, body, who.name)
    return WorkerShown(**await one_of(house, Sort.WORKERS, id_))


# — proxies —


@routes.get("/api/proxies")
async def list_proxies(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[ProxyShown]:
    """Proxies, who uses each, how it fares, by their ids."""
    found, following = await page_of(house, Sort.PROXIES, cursor, limit)
    return PageOf(items=[ProxyShown(**each) for each in found], next=following)


@routes.post("/api/proxies", status_code=201)
async def add_proxy(body: NewProxy, who: Admin, house: AHouse) -> Made:
    """A proxy; without a name it is called by its host and port."""
    await may_stand(tools_of(house), body.host, body.port)
    secrets = await secrets_of(house, who.name)
    password = None if body.password is None else Secret(body.password)
    given: dict[str, Any] = {**body.model_dump(), "password": password}
    id_ = await house.retoma.write(lambda tx: store.add_proxy(tx, secrets, **given))
    return Made(ids=[id_])


@routes.get("/api/proxies/{id}")
async def get_proxy(id_: ThingId, _: Viewer, house: AHouse) -> ProxyShown:
    """One proxy."""
    return ProxyShown(**await one_of(house, Sort.PROXIES, id_))


@routes.patch("/api/proxies/{id}")
async def change_proxy(
    id_: ThingId, body: ChangedProxy, who: Admin, house: AHouse
) -> ProxyShown:
    """Change a proxy. Its address only while no session goes out by it."""
    await change(tools_of(house), Sort.PROXIES, id_, body, who.name)
    return ProxyShown(**await one_of(house, Sort.PROXIES, id_))


# — writers —


@routes.get("/api/writers")
async def list_writers(
    _: Viewer, house: AHouse, cursor: NextPage = None, limit: Limit = 50
) -> PageOf[WriterShown]:
    """Writers, by their ids."""
    found, following = await page_of(house, Sort.WRITERS, cursor, limit)
    return PageOf(items=[WriterShown(**each) for each in found], next=following)


@routes.post("/api/writers", status_code=201)
async def add_writer(body: NewWriter, who: Admin, house: AHouse) -> Made:
    """A writer."""
    await may_go(tools_of(house), "ads writer", body.url)
    secrets = await secrets_of(house, who.name)
    given: dict[str, Any] = {**body.model_dump(), "api_key": Secret(body.api_key)}
    id_ = await house.retoma.write(lambda tx: store.add_writer(tx, secrets, **given))
    return Made(ids=[id_])


@routes.get("/api/writers/{id}")
async def get_writer(id_: ThingId, _: Viewer, house: AHouse) -> WriterShown:
    """One writer."""
    return WriterShown(**await one_of(house, Sort.WRITERS, id_))


@routes.patch("/api/writers/{id}")
async def change_writer(
    id_: ThingId, body: ChangedWriter, who: Admin, house: AHouse
) -> WriterShown:
    """Change a writer. Its address only while it stores nothing."""
    await change(tools_of(house), Sort.WRITERS, id_, body, who.name)
    return WriterShown(**await one_of(house, Sort.WRITERS, id_))


CHANGED: Final[Mapping[Sort, type[Changed]]] = {
    Sort.WORKERS: ChangedWorker,
    Sort.PROXIES: ChangedProxy,
    Sort.WRITERS: ChangedWriter,
}


async def change(tools: Tools, sort: Sort, id_: str, body: Changed, actor: str) -> None:
    """Where it is to stand from now on is checked first."""
    if isinstance(body, ChangedProxy):
        now = await one_of(tools, sort, id_)
        await may_stand(tools, body.host or now["host"], body.port or now["port"])
    elif isinstance(body, ChangedWorker | ChangedWriter) and body.url is not None:
        await may_go(tools, f"ads {sort.one}", body.url)
    secrets = await secrets_by(tools, actor)
    write = store.CHANGES[sort]
    await tools.retoma.write(lambda tx: write(tx, secrets, id_, body.told))
