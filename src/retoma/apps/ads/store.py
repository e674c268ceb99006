"""The rows of the ads orchestrator, by named SQL. Whoever moves one writes its line of the log with it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Protocol

from retoma.apps.ads.model import (
    ERRORS,
    EXHAUSTED,
    Action,
    Event,
    MediaType,
    Mission,
    Phase,
    WorkerStatus,
    budget,
)
from retoma.codec import encode
from retoma.db import Row, Statement, statement
from retoma.engine.errors import IllegalMove, NotFound
from retoma.engine.transaction import Transaction
from retoma.secret import Secret
from retoma.vault import Place as SecretPlace
from retoma.vault import Sealer
from retoma.words import say

PROXIES: Final = "ads.proxies"
SESSIONS: Final = "ads.sessions"
SESSION: Final = "ads.session"
EXTRACTION: Final = "ads.extraction"
STORAGE: Final = "ads.storage"
REST: Final = 15.0  # seconds a worker rests after a session that failed, doubled up to
LONGEST_REST: Final = 900.0
PROGRESS: Final = 60.0  # seconds between two lines of progress
MESSAGE: Final = 2000  # characters of an error that are kept
MICROSECONDS: Final = 1_000_000


class Asks(Protocol):
    """A transaction, ours or lent."""

    def one(self, statement: Statement, **params: Any) -> Row | None: ...


def verb(name: str) -> Statement:
    return statement("retoma.apps.ads.sql", name)


ADD_MISSIONS = verb("add_missions")
ADD_PROXY = verb("add_proxy")
ADD_WORKER = verb("add_worker")
ADD_WRITER = verb("add_writer")
ASK_CANCEL = verb("ask_cancel")
ASSIGN_MISSION = verb("assign_mission")
BEGIN_SESSION = verb("begin_session")
CHOOSE_WRITER = verb("choose_writer")
COUNT_MISSIONS = verb("count_missions")
COUNT_RETRY = verb("count_retry")
COUNT_SERVED = verb("count_served")
END_SESSION = verb("end_session")
FAIL_MISSION = verb("fail_mission")
FINISH_MISSION = verb("finish_mission")
FREE_WORKER = verb("free_worker")
FREE_WORKERS = verb("free_workers")
GET_MISSION = verb("get_mission")
GET_PROXY = verb("get_proxy")
GET_WISH = verb("get_wish")
GET_WORKER = verb("get_worker")
GET_WRITER = verb("get_writer")
GIVE_WRITER = verb("give_writer")
HEAR_SESSION = verb("hear_session")
HOLD_CLAIM = verb("hold_claim")
HOLD_EXTRACTION = verb("hold_extraction")
KEEP_SCRAPE = verb("keep_scrape")
KNOWS_SESSION = verb("knows_session")
LAST_PROGRESS = verb("last_progress")
LAST_PROXY = verb("last_proxy")
LEAVE_SESSION = verb("leave_session")
LIST_MISSIONS = verb("list_missions")
LIST_PROXIES = verb("list_proxies")
LIST_TIMELINE = verb("list_timeline")
LIST_UNDERWAY = verb("list_underway")
LIST_WORKERS = verb("list_workers")
LIST_WRITERS = verb("list_writers")
LOG = verb("log")
LOOK_AT_SESSION = verb("look_at_session")
LOSE_SESSION = verb("lose_session")
MOVE_WORKER = verb("move_worker")
NAME_SCRAPE = verb("name_scrape")
NAME_WRITE = verb("name_write")
NEXT_NUMBERS = verb("next_numbers")
OPEN_GENERATION = verb("open_generation")
OPEN_SESSION = verb("open_session")
OPEN_WORK = verb("open_work")
PHASE_RETRIES = verb("phase_retries")
READY_SESSION = verb("ready_session")
REST_WORKER = verb("rest_worker")
SERVE_MISSION = verb("serve_mission")
SET_EXTRACTION = verb("set_extraction")
SET_SESSION_JOB = verb("set_session_job")
SET_STORAGE = verb("set_storage")
SET_WISH = verb("set_wish")
TAKE_WORKER = verb("take_worker")
WORKER_FAILURES = verb("worker_failures")
WRITER_BEGAN = verb("writer_began")


def tell(
    tx: Transaction,
    event: Event,
    details: Mapping[str, Any],
    *,
    mission: str | None = None,
    session: int | None = None,
) -> None:
    tx.run(LOG, mission=mission, session=session, event=str(event), details=encode(details))


def numbers(tx: Transaction, sort: str, n: int) -> list[str]:
    """So many ids that people can say to each other: MIS-000042."""
    row = tx.one(NEXT_NUMBERS, name=sort, n=n)
    last = 0 if row is None else int(row[0])
    return [f"{sort}-{number:06}" for number in range(last - n + 1, last + 1)]


# — missions: what people do —


@dataclass(frozen=True, slots=True)
class NewMission:
    """What somebody wants to have scraped."""

    date_start: date
    date_end: date
    media_type: MediaType
    languages: tuple[str, ...]


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


def queue_missions(tx: Transaction, missions: Sequence[str], *, actor: str) -> None:
    """ "Adicionar à fila": all of them, or none. One that ended before begins a new generation."""
    for mission in missions:
        row = tx.one(OPEN_GENERATION, mission=mission, actor=actor)
        if row is None:
            status = get_status(tx, mission)
            raise IllegalMove(
                say(
                    "{mission} is {status}: only one that is new or has ended can be queued",
                    mission=mission,
                    status=status,
                )
            )
        job = tx.submit(EXTRACTION, mission, key=f"{mission}/{row[0]}", actor=actor)
        tx.run(SET_EXTRACTION, mission=mission, job=job.id)
        tell(tx, Event.MISSION_QUEUED, {"queued_by": actor}, mission=mission)
    open_sessions(tx)


def cancel_mission(tx: Transaction, mission: str, *, actor: str) -> str:
    """ "Cancelar" (§5.4). The wish is written before anybody is asked to stop."""
    tx.all(HOLD_EXTRACTION, mission=mission)
    row = tx.one(ASK_CANCEL, mission=mission, actor=actor)
    if row is None:
        status = get_status(tx, mission)
        if status == "canceled":
            return status
        raise IllegalMove(
            say(
                "{mission} is {status}: there is nothing to cancel",
                mission=mission,
                status=status,
            )
        )
    extraction, checkpoint = row
    if checkpoint == "armazenamento":
        told = {"canceled_by": actor, "previous_checkpoint": checkpoint}
        tell(tx, Event.MISSION_CANCELED, told, mission=mission)
        tx.tell("ads.mission_canceled", mission, actor=actor)  # no job moves: it is followed on
    else:
        tx.cancel(extraction, actor=actor)
    return get_status(tx, mission)


def get_status(tx: Transaction, mission: str) -> str:
    row = tx.one(GET_MISSION, mission=mission)
    if row is None:
        raise NotFound(say("there is no mission {mission}", mission=mission))
    return str(row[5])


def mission_of(tx: Asks, mission: str) -> Mission:
    row = tx.one(GET_MISSION, mission=mission)
    if row is None:
        raise NotFound(say("there is no mission {mission}", mission=mission))
    return Mission(
        row[0], _date(row[1]), _date(row[2]), MediaType(row[3]), tuple(json_of(row[4]))
    )


# — workers, proxies, writers —


@dataclass(frozen=True, slots=True)
class Secrets:
    """How a secret is put in together with the row it belongs to."""

    sealer: Sealer
    actor: str

    def put(self, tx: Transaction, table: str, column: str, row: str, value: Secret) -> None:
        place = SecretPlace(table, column, row)
        tx.inside(lambda raw: self.sealer.put(raw, place, value, actor=self.actor))


def add_worker(
    tx: Transaction,
    secrets: Secrets,
    *,
    name: str,
    url: str,
    api_key: Secret,
    storage_domain: str | None = None,
) -> str:
    """One without a storage_domain is kept, but takes nothing up: nobody could fetch what it finds."""
    [id_] = numbers(tx, "WRK", 1)
    told = {"name": name, "url": url, "storage_domain": storage_domain}
    tx.run(ADD_WORKER, id=id_, active=storage_domain is not None, **told)
    secrets.put(tx, "ads_workers", "api_key", id_, api_key)
    open_sessions(tx)
    return id_


def add_proxy(
    tx: Transaction,
    secrets: Secrets,
    *,
    host: str,
    port: int | None = None,
    name: str | None = None,
    username: str | None = None,
    password: Secret | None = None,
    vendor: str = "",
) -> str:
    [id_] = numbers(tx, "PRX", 1)
    called = name or (host if port is None else f"{host}:{port}")
    told = {"host": host, "port": port, "username": username, "vendor": vendor}
    if tx.one(ADD_PROXY, id=id_, name=called, **told) is None:
        raise IllegalMove(say("there is already a proxy called {name}", name=called))
    if password is not None:
        secrets.put(tx, "ads_proxies", "password", id_, password)
    tx.put_things(PROXIES, {id_: id_}, vendor=vendor, actor=secrets.actor)
    return id_


def add_writer(
    tx: Transaction, secrets: Secrets, *, name: str, url: str, api_key: Secret
) -> str:
    [id_] = numbers(tx, "WRT", 1)
    tx.run(ADD_WRITER, id=id_, name=name, url=url, active=True)
    secrets.put(tx, "ads_writers", "api_key", id_, api_key)
    return id_


# — the orchestrator: a wish —


def start(tx: Transaction, *, actor: str) -> bool:
    """ "Iniciar": whether that is new. Said twice it changes nothing."""
    changed = tx.one(SET_WISH, wish="started", actor=actor) is not None
    if changed:
        tx.tell("ads.started", "orchestrator", actor=actor)
    open_sessions(tx)
    return changed


def stop(tx: Transaction, *, actor: str) -> bool:
    """ "Parar": what runs is finished, then the sessions end."""
    changed = tx.one(SET_WISH, wish="stopped", actor=actor) is not None
    if changed:
        tx.tell("ads.stopped", "orchestrator", actor=actor)
    return changed


def open_sessions(tx: Transaction) -> None:
    """A session for every worker that has none, if the orchestrator works and missions wait."""
    wish, work = tx.one(GET_WISH), tx.one(OPEN_WORK)
    if wish is None or wish[0] != "started" or work is None or not work[0]:
        return
    for worker, rests_until, now in tx.all(FREE_WORKERS):
        row = tx.one(BEGIN_SESSION, worker=worker)
        if row is None:
            continue
        delay = 0.0 if rests_until is None else max(0.0, seconds_between(now, rests_until))
        job = tx.submit(SESSION, row[0], key=str(row[0]), delay=delay)
        tx.run(SET_SESSION_JOB, session=row[0], job=job.id)


# — sessions: what their stories do —


@dataclass(frozen=True, slots=True)
class SessionSeen:
    """Where a session stands."""

    worker: str
    proxy: str | None
    proxy_name: str | None
    lost: str | None
    ended: bool
    served: int
    ready: bool
    age: float  # seconds since it was asked for
    silent: float  # seconds since its worker last answered
    status: WorkerStatus
    wanted: bool  # its worker is active, and the orchestrator works
    held: bool  # a mission has it
    work: bool  # missions wait, or are under way


def look_at_session(tx: Asks, session: int) -> SessionSeen:
    row = tx.one(LOOK_AT_SESSION, session=session)
    if row is None:
        raise NotFound(say("there is no session {session}", session=session))
    worker, proxy, name, lost, ended, served, ready, opened, silent, status, *rest = row
    active, wish, held, work, now = rest
    return SessionSeen(
        worker=worker,
        proxy=proxy,
        proxy_name=name,
        lost=lost,
        ended=bool(ended),
        served=served,
        ready=bool(ready),
        age=0.0 if opened is None else seconds_between(opened, now),
        silent=0.0 if silent is None else seconds_between(silent, now),
        status=WorkerStatus(status),
        wanted=bool(active) and wish == "started",
        held=bool(held),
        work=bool(work),
    )


def last_proxy(tx: Asks, worker: str, session: int) -> str | None:
    """By which the worker's session before this one went out: the next goes by another."""
    row = tx.one(LAST_PROXY, worker=worker, session=session)
    return None if row is None else str(row[0])


def open_session(tx: Transaction, session: int, worker: str, proxy: str) -> None:
    """It has a proxy, and is asked for next (§2.2.3)."""
    row = tx.one(GET_PROXY, proxy=proxy)
    name = proxy if row is None else str(row[1])
    before = tx.one(LAST_PROXY, worker=worker, session=session)
    tx.run(OPEN_SESSION, session=session, proxy=proxy, name=name)
    tx.run(MOVE_WORKER, worker=worker, status=str(WorkerStatus.INITIALIZING))
    if before is not None and before[0] != proxy:
        told = {"old_proxy": before[1], "new_proxy": name, "proxy_name": before[1]}
        tell(tx, Event.PROXY_ROTATED, {**told, "reason": "new session"}, session=session)
    told = {"worker_id": worker, "proxy_id": proxy, "proxy_name": name}
    tell(tx, Event.SESSION_STARTED, told, session=session)


def ready_session(tx: Transaction, session: int) -> None:
    """Missions may have it (§2.2.6)."""
    row = tx.one(READY_SESSION, session=session)
    if row is None:
        return
    opened, ready, worker, proxy = row
    tx.run(MOVE_WORKER, worker=worker, status=str(WorkerStatus.READY))
    told = {"worker_id": worker, "duration_ms": milliseconds(opened, ready)}
    tell(tx, Event.SESSION_READY, told, session=session)
    value = {"session": session, "worker": worker, "proxy": proxy}
    tx.put_things(SESSIONS, {worker: value}, actor=SESSION)
    tx.switch_things(SESSIONS, [worker], on=True, reason="ready", actor=SESSION)


def lose_session(tx: Transaction, session: int, code: str) -> None:
    """It is of no use any more; who has it finds that out, and it is ended."""
    row = tx.one(LOSE_SESSION, session=session, code=code)
    if row is None:
        return
    worker, proxy = row
    told = {"worker_id": worker, "error_code": code, "proxy_name": proxy}
    tell(tx, Event.SESSION_FAILED, told, session=session)
    tx.run(MOVE_WORKER, worker=worker, status=str(WorkerStatus.ERROR))
    withdraw(tx, worker, code)


def withdraw(tx: Transaction, worker: str, reason: str) -> None:
    """No mission gets it from now on."""
    known = tx.one(KNOWS_SESSION, worker=worker)
    if known is not None:
        tx.switch_things(SESSIONS, [worker], on=False, reason=reason, actor=SESSION)


def end_session(tx: Transaction, session: int, reason: str) -> None:
    """It is known to be over: the worker rests or is free, the proxy may go to another."""
    row = tx.one(END_SESSION, session=session)
    if row is None:
        return
    worker, _, lost = row
    if reason != "unwanted":
        told = {"worker_id": worker, "reason": reason}
        tell(tx, Event.SESSION_TERMINATED, told, session=session)
    failures = tx.one(WORKER_FAILURES, worker=worker)
    before = 0 if failures is None else int(failures[0])
    rest = min(REST * 2 ** min(before, 10), LONGEST_REST)
    tx.run(REST_WORKER, worker=worker, failed=0 if lost is None else 1, rest=rest)
    open_sessions(tx)


# — missions: what their stories do —


@dataclass(frozen=True, slots=True)
class Place:
    """Where a mission is extracted."""

    session: int
    worker: str
    proxy: str | None


def assign(tx: Transaction, mission: str, place: Place, job: int) -> bool:
    """Whether the mission is still to be done (§2.3)."""
    given = {"worker": place.worker, "session": place.session, "proxy": place.proxy}
    if tx.one(ASSIGN_MISSION, mission=mission, job=job, **given) is None:
        return False
    named = tx.one(TAKE_WORKER, worker=place.worker, mission=mission)
    tx.run(SERVE_MISSION, session=place.session, mission=mission)
    tx.run(COUNT_SERVED, session=place.session)
    told = {
        "worker_id": place.worker,
        "worker_name": None if named is None else named[0],
        "proxy_name": place.proxy,
        "mission_id": mission,
    }
    tell(tx, Event.MISSION_ASSIGNED, told, mission=mission)
    return True


def scrape_started(tx: Transaction, mission: str, job: int, job_id: str, config: Any) -> None:
    if tx.one(NAME_SCRAPE, mission=mission, job=job, job_id=job_id) is None:
        return
    told = {"worker_job_id": job_id, "mission_id": mission, "mission_config": config}
    tell(tx, Event.SCRAPE_STARTED, told, mission=mission)


def scraped(
    tx: Transaction,
    mission: str,
    place: Place,
    job: int,
    job_id: str,
    ads: int,
    url: str | None,
) -> bool:
    """The worker is free, the writer comes next; or the mission is done, where nothing was found."""
    empty = ads == 0
    row = tx.one(KEEP_SCRAPE, mission=mission, job=job, ads=ads, url=url, empty=int(empty))
    if row is None:
        return False
    if empty:
        tell(tx, Event.SCRAPE_EMPTY, {"worker_job_id": job_id}, mission=mission)
        done = {"total_duration_ms": milliseconds(*row), "ads_count": 0, "success_count": 0}
        tell(tx, Event.MISSION_COMPLETED, {**done, "failed_count": 0}, mission=mission)
    else:
        told = {"worker_job_id": job_id, "ads_count": ads, "duration_ms": milliseconds(*row)}
        tell(tx, Event.SCRAPE_COMPLETED, told, mission=mission)
        storage = tx.submit(STORAGE, mission, key=f"{mission}/{job}")
        tx.run(SET_STORAGE, mission=mission, job=storage.id)
    leave_worker(tx, mission, place)
    return True


def leave_worker(tx: Transaction, mission: str, place: Place) -> None:
    """The worker is done with a mission; a session that has done its share is given to nobody else."""
    tx.run(LEAVE_SESSION, session=place.session, mission=mission)
    row = tx.one(FREE_WORKER, worker=place.worker, mission=mission)
    if row is not None and row[0] >= tx.knob("ads.session_limit"):
        withdraw(tx, place.worker, "session_limit")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows a failure."""

    code: str
    again: bool
    action: str


def failed(
    tx: Transaction, mission: str, code: str, message: str, event: Event, told: dict[str, Any]
) -> Verdict:
    """Another try of its phase, or the end of the mission with the code of a spent budget."""
    error = ERRORS[code]
    text = message[:MESSAGE]
    told = {**told, "error_code": code, "error_message": text}
    tell(tx, event, told, mission=mission)
    if error.action in (Action.WAIT, Action.OPERATOR):
        return Verdict(code, again=True, action=str(error.action))
    spent = dict(
        zip(
            ("session", "scrape", "writer"),
            tx.one(PHASE_RETRIES, mission=mission) or (0, 0, 0),
            strict=True,
        )
    )
    used = (
        spent["scrape" if error.phase is Phase.STORAGE else str(error.phase)]
        if error.phase in EXHAUSTED
        else 0
    )
    most = (
        budget(error.phase, tx.knob("ads.max_retries")) if error.action is Action.RETRY else 0
    )
    if used < most:
        tx.run(COUNT_RETRY, mission=mission, phase=str(error.phase), code=code, message=text)
        retry = {"attempt": used + 1, "error_code": code, "phase": str(error.phase)}
        tell(tx, Event.RETRY_TRIGGERED, retry, mission=mission)
        return Verdict(code, again=True, action=str(Action.RETRY))
    end = EXHAUSTED.get(error.phase, code)
    fail_mission(tx, mission, end, f"{code}: {text}")
    return Verdict(end, again=False, action=str(Action.FAIL))


def fail_mission(tx: Transaction, mission: str, code: str, message: str) -> None:
    row = tx.one(FAIL_MISSION, mission=mission, code=code, message=message[:MESSAGE])
    if row is not None:
        told = {"error_code": code, "error_message": message[:MESSAGE], "retry_count": row[0]}
        tell(tx, Event.MISSION_FAILED, told, mission=mission)


def tell_progress(
    tx: Transaction, mission: str, event: Event, details: Mapping[str, Any]
) -> None:
    """Where something has changed, and at most once a minute."""
    row = tx.one(LAST_PROGRESS, mission=mission, event=str(event))
    told, last, at, now = row or (0, None, None, None)
    if not told or (json_of(last) != details and seconds_between(at, now) >= PROGRESS):
        tell(tx, event, details, mission=mission)


def holds(tx: Transaction, job: int, epoch: int) -> bool:
    """Whether this very claim still runs: who has lost the job writes nothing."""
    return tx.one(HOLD_CLAIM, job=job, epoch=epoch) is not None


# — the writer —


def choose_writer(tx: Transaction, mission: str) -> str | None:
    """Healthy ones and those with least to do first (§3.1.1); None where there is none."""
    row = tx.one(CHOOSE_WRITER)
    if row is None:
        return None
    tx.run(GIVE_WRITER, mission=mission, writer=row[0])
    return str(row[0])


def data_url_of(tx: Asks, mission: str) -> str:
    """Where its ads lie."""
    row = tx.one(GET_MISSION, mission=mission)
    if row is None or row[13] is None:
        raise NotFound(say("there are no ads of {mission}", mission=mission))
    return str(row[13])


def write_started(tx: Transaction, mission: str, job_id: str, url: str) -> None:
    if tx.one(NAME_WRITE, mission=mission, job_id=job_id) is None:
        return
    told = {"writer_job_id": job_id, "data_url": url}
    tell(tx, Event.WRITER_STARTED, told, mission=mission)


def written(
    tx: Transaction, mission: str, job: int, job_id: str, success: int, lost: int
) -> str:
    """The mission is done (§3.3), unless it was canceled meanwhile; its status."""
    took = milliseconds(*(tx.one(WRITER_BEGAN, mission=mission) or (None, None)))
    told = {"writer_job_id": job_id, "success_count": success, "failed_count": lost}
    tell(tx, Event.WRITER_COMPLETED, {**told, "duration_ms": took}, mission=mission)
    row = tx.one(FINISH_MISSION, mission=mission, job=job, success=success, failed=lost)
    if row is None:
        return "gone"
    status, ads, started, finished = row
    if status == "completed":
        done = {"total_duration_ms": milliseconds(started, finished), "ads_count": ads}
        done |= {"success_count": success, "failed_count": lost}
        tell(tx, Event.MISSION_COMPLETED, done, mission=mission)
    return str(status)


# — times —


def seconds_between(earlier: Any, later: Any) -> float:
    """Of two times as either database gives them."""
    if isinstance(earlier, datetime):
        return float((later - earlier).total_seconds())
    return float(later - earlier) / MICROSECONDS


def milliseconds(earlier: Any, later: Any) -> int | None:
    if earlier is None or later is None:
        return None
    return round(seconds_between(earlier, later) * 1000)


def _date(value: Any) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


def json_of(value: Any) -> Any:
    """A json column, as either database gives it."""
    return json.loads(value) if isinstance(value, str) else value
