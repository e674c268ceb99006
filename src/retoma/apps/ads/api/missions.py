"""Missions over the API."""

from datetime import date, datetime
from typing import Annotated

from fastapi import Query, Response
from pydantic import Field, JsonValue

from retoma.apps.ads import store
from retoma.apps.ads.api.wire import Made, MissionId, routes
from retoma.apps.ads.model import Checkpoint, Event, MediaType, Status
from retoma.apps.ads.service import missions
from retoma.apps.ads.service.inputs import LANGUAGE, MOST_MISSIONS, NewMission, Ticked
from retoma.web import AHouse, House, Operator, Viewer
from retoma.web.cursor import Cursor
from retoma.web.replay import asked, written
from retoma.web.wire import Body, Day, Limit, NextPage, Once, PageOf, Shown


class NewMissions(Body):
    """Missions for the Banco de Missões, all of them or none."""

    missions: Annotated[list[NewMission], Field(min_length=1, max_length=MOST_MISSIONS)]


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
    found = await missions.list_missions(house.retoma, search, before=before, limit=limit + 1)
    shown = [MissionShown.model_validate(each) for each in found[:limit]]
    return PageOf(items=shown, next=stamp.write(shown[-1].id if len(found) > limit else None))


@routes.post("/api/missions", status_code=201, responses={200: {"model": Made}})
async def add_missions(
    body: NewMissions, who: Operator, house: AHouse, response: Response, key: Once = None
) -> Made:
    """Into the Banco de Missões; nobody takes them up before they are queued."""
    wanted = [each.mission for each in body.missions]
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
    await missions.queue_missions(house.retoma, body.missions, actor=who.name)
    return Made(ids=body.missions)


@routes.post("/api/missions/delete")
async def delete_missions(body: Ticked, who: Operator, house: AHouse) -> Made:
    """Out of the Banco: all of them or none, and only those nobody is at; their log stays."""
    await missions.delete_missions(house.retoma, body.missions, actor=who.name)
    return Made(ids=body.missions)


@routes.delete("/api/missions/{mission}", status_code=204)
async def delete_mission(mission: MissionId, who: Operator, house: AHouse) -> None:
    """Out of the Banco, if nobody is at it; its log stays."""
    await missions.delete_missions(house.retoma, [mission], actor=who.name)


@routes.get("/api/missions/{mission}")
async def get_mission(mission: MissionId, _: Viewer, house: AHouse) -> MissionShown:
    """One mission."""
    return await _shown(house, mission)


@routes.post("/api/missions/{mission}/cancel")
async def cancel_mission(mission: MissionId, who: Operator, house: AHouse) -> MissionShown:
    """ "Cancelar", in whatever state it is (§5.4); asked twice it answers the same."""
    await missions.cancel_mission(house.retoma, mission, actor=who.name)
    return await _shown(house, mission)


@routes.post("/api/missions/{mission}/resend-failed")
async def resend_failed(mission: MissionId, who: Operator, house: AHouse) -> MissionShown:
    """Its ads go to a writer once more: of a mission some of whose ads were refused, or that has
    failed there. What is stored already is only written again."""
    await missions.resend_missions(house.retoma, [mission], actor=who.name)
    return await _shown(house, mission)


@routes.get("/api/missions/{mission}/failed-items")
async def failed_items(mission: MissionId, _: Viewer, house: AHouse) -> list[FailedItemShown]:
    """Its ads that a writer refused, the first of them, each with the reason."""
    found = await missions.list_failed_items(house.retoma, mission)
    return [FailedItemShown.model_validate(each) for each in found]


@routes.get("/api/missions/{mission}/timeline")
async def mission_timeline(mission: MissionId, _: Viewer, house: AHouse) -> list[LogShown]:
    """What happened to it, in order (§10.3)."""
    happened = await missions.get_timeline(house.retoma, mission)
    return [LogShown.model_validate(each) for each in happened]


async def _shown(house: House, mission: str) -> MissionShown:
    return MissionShown.model_validate(await missions.get_mission(house.retoma, mission))
