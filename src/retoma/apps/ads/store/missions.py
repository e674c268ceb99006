"""Missions, as people handle them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any

from retoma import db
from retoma.apps.ads.model import Checkpoint, Event, MediaType, Mission, NewMission, Status
from retoma.apps.ads.store.orchestrator import open_sessions, stop
from retoma.apps.ads.store.rows import EXTRACTION, SQL, numbers, tell
from retoma.codec import encode
from retoma.engine.rules.errors import BadInput, IllegalMove, NotFound
from retoma.engine.rules.states import ParkReason, State
from retoma.engine.run.transaction import Transaction
from retoma.engine.store import unpark
from retoma.words import say


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


@dataclass(frozen=True, slots=True, kw_only=True)
class MissionRecord:
    """A mission with all that its row holds."""

    id: str
    date_start: date
    date_end: date
    media_type: MediaType
    languages: list[str]
    status: Status
    checkpoint: Checkpoint | None
    generation: int
    extraction: int | None  # the job that extracts its ads
    storage: int | None  # the job that stores them
    session: int | None
    worker_id: str | None
    worker_job_id: str | None
    worker_data_url: str | None
    proxy_used: str | None
    writer_id: str | None
    writer_job_id: str | None
    ads_count: int | None
    success_count: int | None
    failed_count: int | None
    error_code: str | None
    error_message: str | None
    session_retries: int
    scrape_retries: int
    writer_retries: int
    created_by: str
    queued_by: str | None
    canceled_by: str | None
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def retry_count(self) -> int:
        return self.session_retries + self.scrape_retries + self.writer_retries

    @property
    def is_open(self) -> bool:
        """Whether it waits in the queue or runs."""
        return self.status in (Status.QUEUED, Status.RUNNING)

    @property
    def is_resendable(self) -> bool:
        """Whether its ads may be sent to a writer again."""
        if self.worker_data_url is None:
            return False
        if self.status is Status.COMPLETED:
            return bool(self.failed_count)
        return self.status is Status.FAILED and self.checkpoint is Checkpoint.ARMAZENAMENTO


@dataclass(frozen=True, slots=True)
class RunningMission:
    """A mission that runs, with its worker and the job that works at it."""

    id: str
    checkpoint: Checkpoint | None
    worker_id: str | None
    worker: str | None
    proxy: str | None
    ads_count: int | None
    retries: int
    canceled_by: str | None
    started_at: datetime | None
    job: int | None
    state: State | None  # of the job
    progress: float | None
    note: str | None


@dataclass(frozen=True, slots=True)
class MissionHolder:
    """The worker and the writer of a mission by name, and the job that works at it."""

    worker: str | None
    writer: str | None
    job: int | None
    parked: bool | None
    note: str | None
    reason: str | None  # why the job is parked

    @property
    def resumable(self) -> bool:
        """Whether a person can resume the job; of an unknown remote call the job asks what happened."""
        return bool(self.parked) and self.reason != ParkReason.UNKNOWN_REMOTE


def list_missions(
    tx: db.Transaction, search: MissionSearch, *, before: str | None = None, n: int = 50
) -> list[MissionRecord]:
    """The newest first."""
    return tx.all(SQL.list_missions, into=MissionRecord, before=before, n=n, **search.asked())


def list_running_missions(tx: db.Transaction, n: int) -> list[RunningMission]:
    return tx.all(SQL.list_underway, into=RunningMission, n=n)


def look_up_mission(tx: db.Transaction, mission: str) -> MissionRecord | None:
    return tx.one(SQL.get_mission, into=MissionRecord, mission=mission)


def get_mission(tx: db.Transaction, mission: str) -> MissionRecord:
    found = look_up_mission(tx, mission)
    if found is None:
        raise NotFound(say("there is no mission {mission}", mission=mission))
    return found


def get_mission_holder(tx: db.Transaction, mission: str) -> MissionHolder:
    return tx.one(SQL.who_has_it, into=MissionHolder, mission=mission) or MissionHolder(
        *[None] * 6
    )


def count_by_status(tx: db.Transaction) -> dict[str, int]:
    """How many missions there are of each status."""
    found = {str(status): int(n) for status, n in tx.all(SQL.count_by_status)}
    return {str(each): found.get(each, 0) for each in Status}


def find_missions(tx: db.Transaction, search: MissionSearch, *, most: int) -> list[str]:
    """All that are like that, also on other pages."""
    found = tx.all(SQL.find_missions, into=str, n=most + 1, **search.asked())
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
    tx.run(SQL.add_missions, rows=json.dumps(rows), actor=actor)
    tx.tell("ads.missions_added", f"{ids[0]} - {ids[-1]}", actor=actor)
    return ids


def queue_missions(
    tx: Transaction, missions: Sequence[str], *, actor: str, again: bool = True
) -> None:
    """ "Adicionar à fila": all of them, or none. One that ended before begins a new generation, if
    that is what is meant."""
    wanted = [*dict.fromkeys(missions)]
    opened: dict[str, int] = dict(
        tx.all(SQL.open_generations, missions=json.dumps(wanted), actor=actor)
    )
    for mission in wanted:
        _check_opened(tx, mission, opened.get(mission), again=again)
    jobs = {
        mission: tx.submit(EXTRACTION, mission, key=f"{mission}/{opened[mission]}", actor=actor)
        for mission in wanted
    }
    tx.run(SQL.set_extractions, jobs=json.dumps({each: job.id for each, job in jobs.items()}))
    tx.run(SQL.log_queued, missions=json.dumps(wanted), details=encode({"queued_by": actor}))
    open_sessions(tx)


def _check_opened(tx: Transaction, mission: str, generation: Any, *, again: bool) -> None:
    if generation is None:
        raise IllegalMove(
            say(
                "{mission} is {status}: only one that is new or has ended can be queued",
                mission=mission,
                status=get_mission(tx, mission).status,
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
    status = get_mission(tx, mission).status
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
    tx.all(SQL.hold_extraction, mission=mission)
    row = tx.one(SQL.ask_cancel, mission=mission, actor=actor)
    if row is None:
        return False
    extraction, checkpoint = row
    if checkpoint != "armazenamento":
        tx.cancel(extraction, actor=actor)
        return True
    told = {"canceled_by": actor, "previous_checkpoint": checkpoint}
    tell(tx, Event.MISSION_CANCELED, told, mission=mission)
    tx.tell("ads.mission_canceled", mission, actor=actor)  # no job moves: it is followed on
    parked = tx.one(SQL.parked_storage, into=int, mission=mission)
    if parked is not None:
        tx.cancel(parked, actor=actor)  # no writer has anything of it
    return True


def resume_parked(tx: Transaction, missions: Sequence[str], *, actor: str) -> None:
    """ "Continuar": those that wait for a person go on; all of them, or none."""
    for mission in missions:
        job = tx.one(SQL.parked_job, into=int, mission=mission)
        if job is None:
            raise IllegalMove(
                say(
                    "{mission} is {status}: nothing of it waits for a person",
                    mission=mission,
                    status=get_mission(tx, mission).status,
                )
            )
        unpark(tx, job, actor=actor)
    open_sessions(tx)


def stop_now(tx: Transaction, *, actor: str) -> list[str]:
    """ "Parar agora": what runs is canceled too; which missions that were."""
    stop(tx, actor=actor)
    running = tx.all(SQL.list_running, into=str)
    return [mission for mission in running if _ask_to_cancel(tx, mission, actor)]


def delete_missions(tx: Transaction, missions: Sequence[str], *, actor: str) -> None:
    """All of them, or none; only those nobody is at. What happened to them is told on."""
    for mission in missions:
        if tx.one(SQL.delete_mission, mission=mission) is None:
            raise IllegalMove(
                say(
                    "{mission} is {status}: cancel it before it is deleted",
                    mission=mission,
                    status=get_mission(tx, mission).status,
                )
            )
        tx.tell("ads.mission_deleted", mission, actor=actor)


def stops_unseen(tx: db.Transaction, mission: str) -> bool:
    """ "Cancelamento não confirmado": it is canceled, and nobody saw what works at it end."""
    return tx.one(SQL.stops_unseen, mission=mission) is not None


def mission_of(tx: db.Transaction, mission: str) -> Mission:
    found = get_mission(tx, mission)
    days = (found.date_start, found.date_end)
    return Mission(found.id, *days, found.media_type, tuple(found.languages))
