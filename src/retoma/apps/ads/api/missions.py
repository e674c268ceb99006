"""Missions over the API."""

import re
from datetime import date, datetime
from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import AfterValidator, Field, JsonValue, StrictStr, model_validator

from retoma.apps.ads import store
from retoma.apps.ads.api.how import Made, named, read, routes, time_told
from retoma.apps.ads.model import Checkpoint, Event, MediaType, Status
from retoma.apps.ads.store import reports
from retoma.db import Row
from retoma.engine.rules.errors import NotFound
from retoma.web import AHouse, House, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.replay import asked, written
from retoma.web.wire import Body, Day, Limit, NextPage, Once, PageOf, Shown
from retoma.words import say

MOST = 1_000  # missions in one body
LANGUAGE = r"^[a-z]{2,3}(-[A-Za-z]{2,4})?$"
MissionId = Annotated[
    str, Path(min_length=1, max_length=100, description="The id of a mission.")
]


def language(value: str) -> str:
    if re.fullmatch(LANGUAGE, value) is None:
        raise ValueError(say("is no language such as pt or pt-BR"))
    return value


Tongue = Annotated[
    StrictStr, AfterValidator(language), Field(json_schema_extra={"pattern": LANGUAGE})
]


class NewMission(Body):
    """What is to be scraped."""

    date_start: Day
    date_end: Day
    media_type: MediaType = MediaType.ALL
    languages: Annotated[list[Tongue], Field(min_length=1, max_length=50)]

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


class FailedItemShown(Shown):
    """An ad that a writer could not store."""

    index: int
    data: JsonValue
    error: str


class LogShown(Shown):
    """One line of what happened to a mission."""

    timestamp: datetime
    event: Event
    details: JsonValue


@routes.get("/api/missions")
async def list_missions(
    _: Viewer,
    house: AHouse,
    status: Annotated[Status | None, Query(description="Only in this status.")] = None,
    media_type: Annotated[
        MediaType | None, Query(description="Only of this media type.")
    ] = None,
    language: Annotated[
        str | None, Query(pattern=LANGUAGE, description="Only with this language.")
    ] = None,
    since: Annotated[Day | None, Query(description="With this day or later ones.")] = None,
    until: Annotated[Day | None, Query(description="With this day or earlier ones.")] = None,
    code: Annotated[
        str | None, Query(max_length=20, description="Only with this error.")
    ] = None,
    cursor: NextPage = None,
    limit: Limit = 50,
) -> PageOf[MissionShown]:
    """The Banco de Missões, the newest first."""
    search = store.MissionSearch(
        status=status,
        media_type=media_type,
        language=language,
        since=since,
        until=until,
        code=code,
    )
    stamp = Cursor("missions", search.asked())
    [before] = stamp.read(cursor, str) or [None]
    rows = await read(
        house, lambda tx: store.list_missions(tx, search, before=before, n=limit + 1)
    )
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


@routes.post("/api/missions/delete")
async def delete_missions(body: Ticked, who: Operator, house: AHouse) -> Made:
    """Out of the Banco: all of them or none, and only those nobody is at; their log stays."""
    await house.retoma.write(
        lambda tx: store.delete_missions(tx, body.missions, actor=who.name)
    )
    return Made(ids=body.missions)


@routes.delete("/api/missions/{mission}", status_code=204)
async def delete_mission(mission: MissionId, who: Operator, house: AHouse) -> None:
    """Out of the Banco, if nobody is at it; its log stays."""
    await house.retoma.write(lambda tx: store.delete_missions(tx, [mission], actor=who.name))


@routes.get("/api/missions/{mission}")
async def get_mission(mission: MissionId, _: Viewer, house: AHouse) -> MissionShown:
    """One mission."""
    return await _shown(house, mission)


@routes.post("/api/missions/{mission}/cancel")
async def cancel_mission(mission: MissionId, who: Operator, house: AHouse) -> MissionShown:
    """ "Cancelar", in whatever state it is (§5.4); asked twice it answers the same."""
    await house.retoma.write(lambda tx: store.cancel_mission(tx, mission, actor=who.name))
    return await _shown(house, mission)


@routes.post("/api/missions/{mission}/resend-failed")
async def resend_failed(mission: MissionId, who: Operator, house: AHouse) -> MissionShown:
    """Its ads go to a writer once more: of a mission some of whose ads were refused, or that has
    failed there. What is stored already is only written again."""
    await house.retoma.write(lambda tx: store.resend_failed(tx, mission, actor=who.name))
    return await _shown(house, mission)


@routes.get("/api/missions/{mission}/failed-items")
async def failed_items(mission: MissionId, _: Viewer, house: AHouse) -> list[FailedItemShown]:
    """Its ads that a writer refused, the first of them, each with the reason."""
    await _shown(house, mission)
    return await failed_items_shown(house, mission, store.MOST_ITEMS)


async def failed_items_shown(house: House, mission: str, n: int) -> list[FailedItemShown]:
    asked_for = {"mission": mission, "after": -1, "n": n}
    rows = await read(house, lambda tx: tx.all(store.LIST_FAILED_ITEMS, **asked_for))
    return [
        FailedItemShown(index=place, data=store.json_of(data), error=error)
        for place, data, error in rows
    ]


@routes.get("/api/missions/{mission}/timeline")
async def mission_timeline(mission: MissionId, _: Viewer, house: AHouse) -> list[LogShown]:
    """What happened to it, in order (§10.3)."""
    told = await read(house, lambda tx: reports.timeline(tx, mission))
    return [LogShown.model_validate(each) for each in told]


async def _shown(house: House, mission: str) -> MissionShown:
    row = await read(house, lambda tx: tx.one(store.GET_MISSION, mission=mission))
    if row is None:
        raise NotFound(say("there is no mission {mission}", mission=mission))
    return _mission(row)


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
    told: dict[str, Any] = named(COLUMNS, row)
    told |= {name: time_told(told[name]) for name in TIMES}
    told["retry_count"] = sum(told[name] for name in RETRIES)
    told["languages"] = store.json_of(told["languages"])
    return told
