"""Nouns of the ads orchestrator: missions, workers, proxies, writers, and every rule about them as data.

The words are those of the document. What it says twice in two ways is decided here once, in a table.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any, Final
from urllib.parse import SplitResult

from retoma.codec import encode
from retoma.engine.rules.errors import ErrorClass, Permanent
from retoma.secret import Secret


class Status(StrEnum):
    """Of a mission. `novo` stands in the Banco de Missões; nobody takes it up."""

    NOVO = "novo"
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


class Checkpoint(StrEnum):
    """How far a mission came."""

    ATRIBUIDO = "atribuido"
    EXTRACAO = "extracao"
    ARMAZENAMENTO = "armazenamento"
    FINALIZADO = "finalizado"


class MediaType(StrEnum):
    """What kind of ads is wanted."""

    ALL = "all"
    VIDEO = "video"
    IMAGE = "image"


class WorkerStatus(StrEnum):
    """Of a worker; `scraping` is a ready session in a mission's hands."""

    IDLE = "idle"
    INITIALIZING = "initializing"
    READY = "ready"
    SCRAPING = "scraping"
    ERROR = "error"


class Event(StrEnum):
    """What `mission_logs` tells of."""

    MISSION_QUEUED = "mission_queued"
    MISSION_ASSIGNED = "mission_assigned"
    MISSION_CANCELED = "mission_canceled"
    SESSION_STARTED = "session_started"
    SESSION_READY = "session_ready"
    SESSION_FAILED = "session_failed"
    SESSION_TERMINATED = "session_terminated"
    SCRAPE_STARTED = "scrape_started"
    SCRAPE_PROGRESS = "scrape_progress"
    SCRAPE_COMPLETED = "scrape_completed"
    SCRAPE_FAILED = "scrape_failed"
    SCRAPE_EMPTY = "scrape_empty"
    WRITER_STARTED = "writer_started"
    WRITER_PROGRESS = "writer_progress"
    WRITER_COMPLETED = "writer_completed"
    WRITER_FAILED = "writer_failed"
    MISSION_COMPLETED = "mission_completed"
    MISSION_FAILED = "mission_failed"
    RETRY_TRIGGERED = "retry_triggered"
    PROXY_ROTATED = "proxy_rotated"


# — error codes —


class Phase(StrEnum):
    """Where an error belongs; each has a budget of its own."""

    SESSION = "session"
    SCRAPE = "scrape"
    WRITER = "writer"
    STORAGE = "storage"
    SYSTEM = "system"


class Action(StrEnum):
    """What follows an error."""

    RETRY = "retry"  # its phase once more, within the budget of the phase
    FAIL = "fail"  # the mission has failed
    WAIT = "wait"  # it goes on by itself when what was missing is there again
    OPERATOR = "operator"  # a person must look: trying again would give the same


class Budget(StrEnum):
    """How often what failed is tried again."""

    NONE = "none"
    MAX_RETRIES = "max_retries"  # as often as the setting of this name says, in each phase
    ONCE = "once"  # as the document gives the writer; not at all where max_retries is 0
    ENDLESS = "endless"  # waiting costs nothing, and never ends a mission by itself


@dataclass(frozen=True, slots=True)
class Error:
    """One row of the document's tables of codes, and what we do about it."""

    code: str
    error_class: ErrorClass
    phase: Phase
    action: Action
    budget: Budget
    exhausted: str | None  # the code of a mission whose budget is spent
    means: str
    blames_proxy: bool = False


def _retry(code: str, phase: Phase, exhausted: str, means: str, blames: bool = False) -> Error:
    budget = Budget.ONCE if phase is Phase.WRITER else Budget.MAX_RETRIES
    how = (ErrorClass.TRANSIENT, phase, Action.RETRY, budget, exhausted)
    return Error(code, *how, means, blames)


def _fail(code: str, phase: Phase, means: str, whose: ErrorClass = ErrorClass.LOST) -> Error:
    return Error(code, whose, phase, Action.FAIL, Budget.NONE, None, means)


def _wait(code: str, phase: Phase, means: str) -> Error:
    how = (ErrorClass.TRANSIENT, phase, Action.WAIT, Budget.ENDLESS, None)
    return Error(code, *how, means)


def _person(code: str, phase: Phase, means: str) -> Error:
    how = (ErrorClass.CONFIG, phase, Action.OPERATOR, Budget.NONE, None)
    return Error(code, *how, means)


_ERRORS = (
    _retry("ERROR100", Phase.SESSION, "ERROR104", "Erro genérico de sessão", blames=True),
    _retry("ERROR101", Phase.SESSION, "ERROR104", "Timeout de sessão", blames=True),
    _retry("ERROR102", Phase.SESSION, "ERROR104", "Sessão stuck", blames=True),
    _retry("ERROR103", Phase.SESSION, "ERROR104", "Sessão desconectada", blames=True),
    _fail("ERROR104", Phase.SESSION, "Retry de sessão esgotado"),
    _retry("ERROR200", Phase.SCRAPE, "ERROR203", "Job de scrape falhou"),
    _retry("ERROR201", Phase.SCRAPE, "ERROR203", "Job cancelado"),
    _retry("ERROR202", Phase.SCRAPE, "ERROR203", "Timeout de job"),
    _fail("ERROR203", Phase.SCRAPE, "Retry de scrape esgotado"),
    _retry("ERROR300", Phase.WRITER, "ERROR304", "Erro genérico de writer"),
    _wait("ERROR301", Phase.WRITER, "Conexão recusada"),
    _wait("ERROR302", Phase.WRITER, "Timeout de conexão"),
    _person("ERROR303", Phase.WRITER, "Erro de schema"),
    _fail("ERROR304", Phase.WRITER, "Retry de writer esgotado"),
    _person("ERROR400", Phase.STORAGE, "Erro de S3/Storage"),
    _person("ERROR401", Phase.STORAGE, "Credenciais S3 inválidas"),
    _fail("ERROR500", Phase.SYSTEM, "Erro interno", ErrorClass.BUG),
    _wait("ERROR501", Phase.SYSTEM, "Nenhum proxy disponível"),
    _wait("ERROR502", Phase.SYSTEM, "Worker indisponível"),
)
ERRORS: Final[Mapping[str, Error]] = {each.code: each for each in _ERRORS}
AWAY: Final = "ERROR502"  # of a worker that has not answered for too long
NO_PROXY: Final = "ERROR501"
COUNTED: Final = (Phase.SESSION, Phase.SCRAPE, Phase.WRITER)


def counted_in(phase: Phase) -> Phase:
    """The phase of which the retries are counted: storage fails while a scrape is asked for."""
    return Phase.SCRAPE if phase is Phase.STORAGE else phase


def tries_again(error: Error, max_retries: int) -> int:
    """How often at most."""
    if error.budget is Budget.MAX_RETRIES:
        return max_retries
    return min(1, max_retries) if error.budget is Budget.ONCE else 0


# — workers —


@dataclass(frozen=True, slots=True)
class WorkerRule:
    """Who moves a worker out of a status, by when at the latest, and where it may go."""

    owner: str
    timeout: str  # the knob that bounds it; or why nothing need
    exits: frozenset[WorkerStatus]


_TO = WorkerStatus
# Total: whatever a worker's status is, somebody leads it out. A person may reset `error`, and give up
# a worker with a session, which leads to `error` from anywhere.
WORKER_RULES: Final[Mapping[WorkerStatus, WorkerRule]] = {
    _TO.IDLE: WorkerRule(
        "a person who starts, queues or activates: a session begins",
        "none: nothing is reserved",
        frozenset({_TO.INITIALIZING}),
    ),
    _TO.INITIALIZING: WorkerRule(
        "the handler of its session",
        "timeout_session",
        frozenset({_TO.READY, _TO.ERROR, _TO.IDLE}),
    ),
    _TO.READY: WorkerRule(
        "the claim of a mission, or the handler of its session",
        "polling_session",
        frozenset({_TO.SCRAPING, _TO.IDLE, _TO.ERROR}),
    ),
    _TO.SCRAPING: WorkerRule(
        "the handler of its mission", "timeout_job", frozenset({_TO.READY, _TO.ERROR, _TO.IDLE})
    ),
    _TO.ERROR: WorkerRule(
        "the end of its pause, or a person (Resetar)",
        "rests_until: 15 s, doubled up to 900 s",
        frozenset({_TO.INITIALIZING, _TO.IDLE, _TO.ERROR}),
    ),
}


# — sessions —


class SessionEdge(StrEnum):
    """What the status of a remote session means to us."""

    WAIT = "wait"  # ask again later
    READY = "ready"
    LOST = "lost"  # it is over, or of no use: end it, and begin another with another proxy
    RECONCILE = "reconcile"  # it scrapes and we know nothing of it


# What a worker answers to `GET /session/status`, and the code where that is bad news.
SESSION_STATUSES: Final = (
    "initializing", "connecting", "authenticating", "warming_up", "ready", "scraping", "stuck",
    "disconnected", "terminated",
)  # fmt: skip
_OPENING: Final = frozenset({"initializing", "connecting", "authenticating", "warming_up"})
_LOST: Final = {"stuck": "ERROR102", "disconnected": "ERROR103", "terminated": "ERROR100"}


def session_edge(local: WorkerStatus, remote: str) -> tuple[SessionEdge, str | None]:
    """For every state of ours and every status of theirs one edge, and a code where one is due."""
    if local is WorkerStatus.IDLE or local is WorkerStatus.ERROR:
        # We have no session there: whatever stands there is not ours, and ends before the next.
        gone = remote == "terminated"
        return (SessionEdge.WAIT if gone else SessionEdge.RECONCILE), None
    if remote in _LOST:
        return SessionEdge.LOST, _LOST[remote]
    if remote == "scraping":
        ours = local is WorkerStatus.SCRAPING
        return (SessionEdge.READY if ours else SessionEdge.RECONCILE), None
    if remote == "ready":
        return SessionEdge.READY, None
    if remote in _OPENING:
        # A session that was ready and opens anew has been replaced behind our back.
        fresh = local is WorkerStatus.INITIALIZING
        return (SessionEdge.WAIT, None) if fresh else (SessionEdge.LOST, "ERROR103")
    return SessionEdge.WAIT, None  # a word in no table ends nothing; the deadline does


# — records —

UNUSABLE_ID: Final = "invalid_remote_id"
REMOTE_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Mission:
    """What a mission asks for."""

    id: str
    date_start: date
    date_end: date
    media_type: MediaType
    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NewMission:
    """A mission that somebody adds to the Banco de Missões."""

    date_start: date
    date_end: date
    media_type: MediaType
    languages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Worker:
    """A remote scraping service."""

    id: str
    name: str
    url: str
    api_key: Secret
    storage_domain: str | None


@dataclass(frozen=True, slots=True)
class Proxy:
    """By which a session goes out."""

    id: str
    name: str
    host: str
    port: int | None
    username: str | None
    password: Secret | None

    @property
    def server(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Writer:
    """A remote service that writes ads into a database."""

    id: str
    name: str
    url: str
    api_key: Secret


# — what is said on the wire —


def session_payload(proxy: Proxy) -> dict[str, Any]:
    """As §2.2.4 has it."""
    told: dict[str, Any] = {"server": proxy.server}
    if proxy.username is not None:
        told |= {"username": proxy.username, "password": proxy.password}
    return {"force_refresh": True, "proxy": told}


def scrape_payload(mission: Mission) -> dict[str, Any]:
    """As §2.4.1 has it."""
    return {
        "filters": {
            "date_range": {
                "start": mission.date_start.isoformat(),
                "end": mission.date_end.isoformat(),
            },
            "format": str(mission.media_type),
            "sort_by": "qtd_ads",
            "languages": [*mission.languages],
        },
        "options": {"max_ads": "all", "batch_size": 150},
    }


def writer_payload(job_id: str, data_url: str) -> dict[str, Any]:
    """As §3.1.2 has it, with the `job_id` of §9.2: our own key, under which it is found again."""
    return {
        "job_id": job_id,
        "config": {
            "table": "ads",
            "schema": "public",
            "operation": "upsert",
            "conflict_key": "id",
        },
        "source": {"type": "url", "url": data_url, "json_path": "ads"},
    }


def checked_remote_id(value: Any) -> str:
    """An id of somebody else's that goes into addresses of ours."""
    if isinstance(value, str) and REMOTE_ID.fullmatch(value):
        return value
    raise Permanent(f"{UNUSABLE_ID}: {encode(value):.80}", code="ERROR200")


def data_url(storage_domain: str, job_id: str, scheme: str = "https") -> str:
    """Where a worker leaves what it found (§2.5.1)."""
    job = checked_remote_id(job_id)
    return SplitResult(scheme, storage_domain, f"/{job}/{job}_results.json", "", "").geturl()
