"""Missions, as people handle them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date
from functools import partial
from typing import Any

from retoma.apps.ads.model import Event, MediaType, Mission, Status
from retoma.apps.ads.store.orchestrator import open_sessions, stop
from retoma.apps.ads.store.rows import EXTRACTION, Asks, Reads, json_of, numbers, tell, verb
from retoma.codec import encode
from retoma.db import Row
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import unpark
from retoma.words import say

ADD_MISSIONS = verb("add_missions")
ASK_CANCEL = verb("ask_cancel")
COUNT_BY_STATUS = verb("count_by_status")
DELETE_MISSION = verb("delete_mission")
FIND_MISSIONS = verb("find_missions")
GET_MISSION = verb("get_mission")
HOLD_EXTRACTION = verb("hold_extraction")
LIST_MISSIONS = verb("list_missions")
LIST_RUNNING = verb("list_running")
LIST_TIMELINE = verb("list_timeline")
LIST_UNDERWAY = verb("list_underway")
LOG_QUEUED = verb("log_queued")
OPEN_GENERATIONS = verb("open_generations")
PARKED_JOB = verb("parked_job")
PARKED_STORAGE = verb("parked_storage")
SET_EXTRACTIONS = verb("set_extractions")
STOPS_UNSEEN = verb("stops_unseen")
WHO_HAS_IT = verb("who_has_it")


@dataclass(frozen=True, slots=True)
class NewMission:
    """What somebody wants to have scraped."""

    date_start: date
    date_end: date
    media_type: MediaType
    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissionSearch:
    """Which missions somebody looks for; days: those that have one in common with them."""

    status: Status | None = None
    media_type: MediaType | None = None
    language: str | None = None
    since: date | None = None
    until: date | None = None
    code: str | None = None

    def asked(self) -> dict[str, str | None]:
        """By name, as an address and a statement say it."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: None if value is None else str(value) for name, value in told.items()}


def list_missions(
    tx: Reads, search: MissionSearch, *, before: str | None = None, n: int = 50
) -> list[Row]:
    """The newest first."""
    return tx.all(LIST_MISSIONS, before=before, n=n, **search.asked())


def count_by_status(tx: Reads) -> dict[str, int]:
    """How many missions there are of each status."""
    found = {str(status): int(n) for status, n in tx.all(COUNT_BY_STATUS)}
    return {str(each): found.get(each, 0) for each in Status}


def find_missions(tx: Reads, search: MissionSearch, *, most: int) -> list[str]:
    """All that are like that, also on other pages."""
    found = [str(id_) for (id_,) in tx.all(FIND_MISSIONS, n=most + 1, **search.asked())]
    if len(found) > most:
        raise BadInput(
            say(
                "more than {most} missions match: narrow the filter; nothing was changed",
                most=most,
            )
        )
    return found


def add_missions(tx: Transaction, wanted: Sequence[NewMission], *, actor: str) -> list[str]:
    """Into the Banco de Missões; nobody takes them up before they are queued."""
    ids = numbers(tx, "MIS", len(wanted))
    rows = [
        {
            "id": id_,
            "date_start": each.date_start.isoformat(),
            "date_end": each.date_end.isoformat(),
            "media_type": str(each.media_type),
            "languages": [*each.languages],
        }
        for id_, each in zip(ids, wanted, strict=True)
    ]
    tx.run(ADD_MISSIONS, rows=json.dumps(rows), actor=actor)
    tx.tell("ads.missions_added", f"{ids[0]} - {ids[-1]}", actor=actor)
    return ids


def queue_missions(
    tx: Transaction, missions: Sequence[str], *, actor: str, again: bool = True
) -> None:
    """ "Adicionar à fila": all of them, or none. One that ended before begins a new generation, if
    that is what is meant."""
    wanted = [*dict.fromkeys(missions)]
    opened: dict[str, int] = dict(
        tx.all(OPEN_GENERATIONS, missions=json.dumps(wanted), actor=actor)
    )
    for mission in wanted:
        _check_opened(tx, mission, opened.get(mission), again=again)
    jobs = {
        mission: tx.submit(EXTRACTION, mission, key=f"{mission}/{opened[mission]}", actor=actor)
        for mission in wanted
    }
    tx.run(SET_EXTRACTIONS, jobs=json.dumps({each: job.id for each, job in jobs.items()}))
    tx.run(LOG_QUEUED, missions=json.dumps(wanted), details=encode({"queued_by": actor}))
    open_sessions(tx)


def _check_opened(tx: Transaction, mission: str, generation: Any, *, again: bool) -> None:
    if generation is None:
        raise IllegalMove(
            say(
                "{mission} is {status}: only one that is new or has ended can be queued",
                mission=mission,
                status=get_status(tx, mission),
            )
        )
    if generation > 1 and not again:
        raise IllegalMove(
            say(
                "{mission} has been done before: ask to do it again; nothing was changed",
                mission=mission,
            )
        )


def cancel_mission(tx: Transaction, mission: str, *, actor: str) -> str:
    """ "Cancelar" (§5.4). The wish is written before anybody is asked to stop."""
    asked = _ask_to_cancel(tx, mission, actor)
    status = get_status(tx, mission)
    if not asked and status != "canceled":
        raise IllegalMove(
            say(
                "{mission} is {status}: there is nothing to cancel",
                mission=mission,
                status=status,
            )
        )
    return status


def _ask_to_cancel(tx: Transaction, mission: str, actor: str) -> bool:
    """Whether there was anything to cancel."""
    tx.all(HOLD_EXTRACTION, mission=mission)
    row = tx.one(ASK_CANCEL, mission=mission, actor=actor)
    if row is None:
        return False
    extraction, checkpoint = row
    if checkpoint != "armazenamento":
        tx.cancel(extraction, actor=actor)
        return True
    told = {"canceled_by": actor, "previous_checkpoint": checkpoint}
    tell(tx, Event.MISSION_CANCELED, told, mission=mission)
    tx.tell("ads.mission_canceled", mission, actor=actor)  # no job moves: it is followed on
    parked = tx.one(PARKED_STORAGE, mission=mission)
    if parked is not None:
        tx.cancel(parked[0], actor=actor)  # no writer has anything of it
    return True


def resume_parked(tx: Transaction, missions: Sequence[str], *, actor: str) -> None:
    """ "Continuar": those that wait for a person go on; all of them, or none."""
    for mission in missions:
        row = tx.one(PARKED_JOB, mission=mission)
        if row is None:
            raise IllegalMove(
                say(
                    "{mission} is {status}: nothing of it waits for a person",
                    mission=mission,
                    status=get_status(tx, mission),
                )
            )
        unpark_job = partial(unpark, job=row[0], actor=actor)
        tx.inside(unpark_job)
    open_sessions(tx)


def stop_now(tx: Transaction, *, actor: str) -> list[str]:
    """ "Parar agora": what runs is canceled too; which missions that were."""
    stop(tx, actor=actor)
    running = [mission for (mission,) in tx.all(LIST_RUNNING)]
    return [mission for mission in running if _ask_to_cancel(tx, mission, actor)]


def delete_missions(tx: Transaction, missions: Sequence[str], *, actor: str) -> None:
    """All of them, or none; only those nobody is at. What happened to them is told on."""
    for mission in missions:
        if tx.one(DELETE_MISSION, mission=mission) is None:
            raise IllegalMove(
                say(
                    "{mission} is {status}: cancel it before it is deleted",
                    mission=mission,
                    status=get_status(tx, mission),
                )
            )
        tx.tell("ads.mission_deleted", mission, actor=actor)


def get_status(tx: Transaction, mission: str) -> str:
    row = tx.one(GET_MISSION, mission=mission)
    if row is None:
        raise NotFound(say("there is no mission {mission}", mission=mission))
    return str(row[5])


def stops_unseen(tx: Asks, mission: str) -> bool:
    """ "Cancelamento não confirmado": it is canceled, and nobody saw what works at it end."""
    return tx.one(STOPS_UNSEEN, mission=mission) is not None


def mission_of(tx: Asks, mission: str) -> Mission:
    row = tx.one(GET_MISSION, mission=mission)
    if row is None:
        raise NotFound(say("there is no mission {mission}", mission=mission))
    return Mission(
        row[0], _date(row[1]), _date(row[2]), MediaType(row[3]), tuple(json_of(row[4]))
    )


def _date(value: Any) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)
