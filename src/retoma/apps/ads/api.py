"""The ads orchestrator over the API, in the document's words."""

from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

from fastapi import Path, Query, Response
from pydantic import AfterValidator, Field, JsonValue, StrictInt, StrictStr, model_validator

from retoma.apps.ads import store
from retoma.apps.ads.model import Checkpoint, Event, MediaType, Status, WorkerStatus
from retoma.apps.tools import Tools
from retoma.db import Row, Transaction
from retoma.engine.errors import BadInput, NotFound
from retoma.outbound import Policy
from retoma.secret import Secret
from retoma.web import Admin, AHouse, House, Operator, Viewer, router
from retoma.web.cursor import Cursor
from retoma.web.replay import asked, written
from retoma.web.wire import Body, Limit, Name, NextPage, Once, PageOf, Shown
from retoma.words import say

T = TypeVar("T")
routes = router("ads")

MOST = 1_000  # missions in one body
LANGUAGE = r"^[a-z]{2,3}(-[A-Za-z]{2,4})?$"


def _whole_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ValueError(say("is no address such as https://worker.example.org"))
    return value.rstrip("/")


def _domain(value: str) -> str:
    parts = urlsplit(f"//{value}")
    if parts.netloc != value or not parts.hostname or "@" in value or not value.isprintable():
        raise ValueError(say("is no host, or host:port"))
    return value


MissionId = Annotated[
    str, Path(min_length=1, max_length=100, description="The id of a mission.")
]
Url = Annotated[StrictStr, Field(max_length=500), AfterValidator(_whole_url)]
Domain = Annotated[StrictStr, Field(min_length=1, max_length=255), AfterValidator(_domain)]
Key = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Host = Annotated[StrictStr, Field(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9.:_-]+$")]


# — what is said —


class NewMission(Body):
    """What is to be scraped."""

    date_start: date
    date_end: date
    media_type: MediaType = MediaType.ALL
    languages: Annotated[
        list[Annotated[StrictStr, Field(pattern=LANGUAGE)]], Field(min_length=1, max_length=50)
    ]

    @model_validator(mode="after")
    def _in_order(self) -> "NewMission":
        if self.date_end < self.date_start:
            raise ValueError(say("date_end is before date_start"))
        return self


class NewMissions(Body):
    """Missions for the Banco de Missões, all of them or none."""

    missions: Annotated[list[NewMission], Field(min_length=1, max_length=MOST)]


class Ticked(Body):
    """Missions by their ids."""

    missions: Annotated[
        list[Annotated[StrictStr, Field(min_length=1, max_length=100)]],
        Field(min_length=1, max_length=MOST),
    ]


class NewWorker(Body):
    """A remote scraping service."""

    name: Name
    url: Url
    api_key: Key
    storage_domain: Domain | None = None


class NewProxy(Body):
    """By which sessions go out."""

    host: Host
    port: Annotated[StrictInt, Field(ge=1, le=65535)] | None = None
    name: Name | None = None
    username: Annotated[StrictStr, Field(min_length=1, max_length=100)] | None = None
    password: Annotated[StrictStr, Field(min_length=1, max_length=100)] | None = None
    vendor: Annotated[StrictStr, Field(max_length=100)] = ""


class NewWriter(Body):
    """A service that stores ads."""

    name: Name
    url: Url
    api_key: Key


class MissionShown(Shown):
    """A mission, by the document's columns."""

    id: str
    date_start: date
    date_end: date
    media_type: MediaType
    languages: list[str]
    status: Status
    checkpoint: Checkpoint | None
    generation: int
    worker_id: str | None
    worker_job_id: str | None
    worker_data_url: str | None
    proxy_used: str | None
    writer_job_id: str | None
    ads_count: int | None
    success_count: int | None
    failed_count: int | None
    error_code: str | None
    error_message: str | None
    retry_count: int
    queued_by: str | None
    canceled_by: str | None
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None


class Made(Shown):
    """The ids of what was made."""

    ids: list[str]


class LogShown(Shown):
    """One line of what happened to a mission."""

    timestamp: datetime
    event: Event
    details: JsonValue


class WorkerShown(Shown):
    """A worker; its key is nobody's to see."""

    id: str
    name: str
    url: str
    storage_domain: str | None
    status: WorkerStatus
    session_count: int
    current_mission_id: str | None
    current_proxy_id: str | None
    active: bool
    last_test_ok: bool | None


class ProxyShown(Shown):
    """A proxy; its password is nobody's to see."""

    id: str
    name: str
    host: str
    port: int | None
    username: str | None
    active: bool
    in_use_by_worker_id: str | None
    fail_count: int
    last_test_ok: bool | None


class WriterShown(Shown):
    """A writer; its key is nobody's to see."""

    id: str
    name: str
    url: str
    active: bool
    last_test_ok: bool | None


class OrchestratorShown(Shown):
    """What it is to do, and what is left to do (§6.7)."""

    wish: str
    changed_by: str
    queued_count: int
    running_count: int
    session_count: int


# — missions —


@routes.get("/api/missions")
async def list_missions(
    _: Viewer,
    house: AHouse,
    status: Annotated[Status | None, Query(description="Only in this status.")] = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[MissionShown]:
    """The Banco de Missões, the newest first."""
    stamp = Cursor("missions", str(status))
    [before] = stamp.read(cursor, str) or [None]
    asked_for = {"before": before, "status": status and str(status), "n": limit + 1}
    rows = await _read(house, lambda tx: tx.all(store.LIST_MISSIONS, **asked_for))
    shown = [_mission(row) for row in rows[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(rows) > limit else None))


@routes.post("/api/missions", status_code=201, responses={200: {"model": Made}})
async def add_missions(
    body: NewMissions, who: Operator, house: AHouse, response: Response, key: Once = None
) -> Made:
    """Into the Banco de Missões; nobody takes them up before they are queued."""
    wanted = [
        store.NewMission(each.date_start, each.date_end, each.media_type, tuple(each.languages))
        for each in body.missions
    ]
    made, new = await written(
        house,
        asked(key, who, "missions", body),
        lambda tx: store.add_missions(tx, wanted, actor=who.name),
        lambda ids: Made(ids=ids),
        Made,
    )
    response.status_code = 201 if new else 200
    return made


@routes.post("/api/missions/queue")
async def queue_missions(body: Ticked, who: Operator, house: AHouse) -> Made:
    """ "Adicionar à fila": all of them or none; one that has ended begins a new generation."""
    await house.retoma.write(lambda tx: store.queue_missions(tx, body.missions, actor=who.name))
    return Made(ids=body.missions)


@routes.get("/api/missions/{mission}")
async def get_mission(mission: MissionId, _: Viewer, house: AHouse) -> MissionShown:
    """One mission."""
    return await _shown(house, mission)


@routes.post("/api/missions/{mission}/cancel")
async def cancel_mission(mission: MissionId, who: Operator, house: AHouse) -> MissionShown:
    """ "Cancelar", in whatever state it is (§5.4); asked twice it answers the same."""
    await house.retoma.write(lambda tx: store.cancel_mission(tx, mission, actor=who.name))
    return await _shown(house, mission)


@routes.get("/api/missions/{mission}/timeline")
async def mission_timeline(mission: MissionId, _: Viewer, house: AHouse) -> list[LogShown]:
    """What happened to it, in order (§10.3)."""
    await _shown(house, mission)
    rows = await _read(house, lambda tx: tx.all(store.LIST_TIMELINE, mission=mission))
    return [
        LogShown(timestamp=_at(at), event=Event(event), details=store.json_of(details))
        for at, event, details in rows
    ]


# — the orchestrator —


@routes.get("/api/orchestrator")
async def orchestrator(_: Viewer, house: AHouse) -> OrchestratorShown:
    """Whether it is to work, and whether there is anything to do."""
    return await orchestrator_shown(house)


@routes.post("/api/orchestrator/start")
async def start(who: Operator, house: AHouse) -> OrchestratorShown:
    """ "Iniciar": a wish that outlives every process; said twice it changes nothing."""
    await house.retoma.write(lambda tx: store.start(tx, actor=who.name))
    return await orchestrator_shown(house)


@routes.post("/api/orchestrator/stop")
async def stop(who: Operator, house: AHouse) -> OrchestratorShown:
    """ "Parar": what runs is finished, then the sessions end."""
    await house.retoma.write(lambda tx: store.stop(tx, actor=who.name))
    return await orchestrator_shown(house)


# — workers, proxies, writers —


@routes.get("/api/workers")
async def list_workers(_: Viewer, house: AHouse) -> list[WorkerShown]:
    """Every worker and what it is doing."""
    return await workers_shown(house)


@routes.post("/api/workers", status_code=201)
async def add_worker(body: NewWorker, who: Admin, house: AHouse) -> Made:
    """A worker; without a storage_domain it takes nothing up."""
    await _may_go(house, "ads worker", body.url)
    secrets = await _secrets(house, who.name)
    told: dict[str, Any] = {**body.model_dump(), "api_key": Secret(body.api_key)}
    id_ = await house.retoma.write(lambda tx: store.add_worker(tx, secrets, **told))
    return Made(ids=[id_])


@routes.get("/api/proxies")
async def list_proxies(_: Viewer, house: AHouse) -> list[ProxyShown]:
    """Every proxy, who uses it, how it fares."""
    return await proxies_shown(house)


@routes.post("/api/proxies", status_code=201)
async def add_proxy(body: NewProxy, who: Admin, house: AHouse) -> Made:
    """A proxy; without a name it is called by its host and port."""
    secrets = await _secrets(house, who.name)
    password = None if body.password is None else Secret(body.password)
    told: dict[str, Any] = {**body.model_dump(), "password": password}
    id_ = await house.retoma.write(lambda tx: store.add_proxy(tx, secrets, **told))
    return Made(ids=[id_])


@routes.get("/api/writers")
async def list_writers(_: Viewer, house: AHouse) -> list[WriterShown]:
    """Every writer."""
    return await writers_shown(house)


@routes.post("/api/writers", status_code=201)
async def add_writer(body: NewWriter, who: Admin, house: AHouse) -> Made:
    """A writer."""
    await _may_go(house, "ads writer", body.url)
    secrets = await _secrets(house, who.name)
    told: dict[str, Any] = {**body.model_dump(), "api_key": Secret(body.api_key)}
    id_ = await house.retoma.write(lambda tx: store.add_writer(tx, secrets, **told))
    return Made(ids=[id_])


# — how —


def _tools(house: House) -> Tools:
    tools: Tools = house.retoma.tools["ads"]
    return tools


async def _secrets(house: House, actor: str) -> store.Secrets:
    vault = await _tools(house).vault()
    return store.Secrets(await vault.sealer(), actor)


async def _may_go(house: House, purpose: str, url: str) -> None:
    """An address nobody may call is refused when it is saved, and again whenever it is called."""
    await _tools(house).out.check(Policy.toward(purpose, url), url)


async def _read(house: House, fn: Callable[[Transaction], T]) -> T:
    return await (await house.retoma.database()).read(fn)


async def workers_shown(house: House) -> list[WorkerShown]:
    return await _all(house, store.LIST_WORKERS, WorkerShown)


async def proxies_shown(house: House) -> list[ProxyShown]:
    return await _all(house, store.LIST_PROXIES, ProxyShown)


async def writers_shown(house: House) -> list[WriterShown]:
    return await _all(house, store.LIST_WRITERS, WriterShown)


async def _all(house: House, statement: Any, shape: type[T]) -> list[T]:
    names = shape.model_fields  # type: ignore[attr-defined]
    rows = await _read(house, lambda tx: tx.all(statement))
    return [shape(**dict(zip(names, row, strict=True))) for row in rows]


async def _shown(house: House, mission: str) -> MissionShown:
    row = await _read(house, lambda tx: tx.one(store.GET_MISSION, mission=mission))
    if row is None:
        raise NotFound(say("there is no mission {mission}", mission=mission))
    return _mission(row)


async def orchestrator_shown(house: House) -> OrchestratorShown:
    row = await _read(house, lambda tx: tx.one(store.COUNT_MISSIONS))
    if row is None:
        raise BadInput(say("the ads application is not installed here"))
    return OrchestratorShown(**_named(OrchestratorShown.model_fields, row))


COLUMNS = (
    *("id", "date_start", "date_end", "media_type", "languages", "status", "checkpoint"),
    *("generation", "extraction", "storage", "session", "worker_id", "worker_job_id"),
    *("worker_data_url", "proxy_used", "writer_id", "writer_job_id", "ads_count"),
    *("success_count", "failed_count", "error_code", "error_message", "session_retries"),
    *("scrape_retries", "writer_retries", "created_by", "queued_by", "canceled_by"),
    *("created_at", "queued_at", "started_at", "finished_at"),
)
TIMES = ("created_at", "queued_at", "started_at", "finished_at")
RETRIES = ("session_retries", "scrape_retries", "writer_retries")


def _mission(row: Row) -> MissionShown:
    told = mission_told(row)
    return MissionShown(**{name: told[name] for name in MissionShown.model_fields})


def mission_told(row: Row) -> dict[str, Any]:
    """All that a row of a mission tells, by name."""
    told: dict[str, Any] = _named(COLUMNS, row)
    told |= {name: time_told(told[name]) for name in TIMES}
    told["retry_count"] = sum(told[name] for name in RETRIES)
    told["languages"] = store.json_of(told["languages"])
    return told


def _named(names: Iterable[str], row: Row) -> dict[str, Any]:
    return dict(zip(names, row, strict=True))


def time_told(at: Any) -> datetime | None:
    return None if at is None else _at(at)


def _at(at: Any) -> datetime:
    """A time, as either database gives it; a view of SQLite's tells it as text."""
    if isinstance(at, datetime):
        return at
    if isinstance(at, str):
        return datetime.fromisoformat(at).replace(tzinfo=UTC)
    return datetime.fromtimestamp(at / store.MICROSECONDS, UTC)
