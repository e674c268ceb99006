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

from retoma.engine.errors import Permanent
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


@dataclass(frozen=True, slots=True)
class Error:
    """One row of the document's tables of codes, and what we do about it."""

    code: str
    phase: Phase
    action: Action
    means: str
    blames_proxy: bool = False


_ERRORS = (
    Error("ERROR100", Phase.SESSION, Action.RETRY, "Erro genérico de sessão", True),
    Error("ERROR101", Phase.SESSION, Action.RETRY, "Timeout de sessão", True),
    Error("ERROR102", Phase.SESSION, Action.RETRY, "Sessão stuck", True),
    Error("ERROR103", Phase.SESSION, Action.RETRY, "Sessão desconectada", True),
    Error("ERROR104", Phase.SESSION, Action.FAIL, "Retry de sessão esgotado"),
    Error("ERROR200", Phase.SCRAPE, Action.RETRY, "Job de scrape falhou"),
    Error("ERROR201", Phase.SCRAPE, Action.RETRY, "Job cancelado"),
    Error("ERROR202", Phase.SCRAPE, Action.RETRY, "Timeout de job"),
    Error("ERROR203", Phase.SCRAPE, Action.FAIL, "Retry de scrape esgotado"),
    Error("ERROR300", Phase.WRITER, Action.RETRY, "Erro genérico de writer"),
    Error("ERROR301", Phase.WRITER, Action.WAIT, "Conexão recusada"),
    Error("ERROR302", Phase.WRITER, Action.WAIT, "Timeout de conexão"),
    Error("ERROR303", Phase.WRITER, Action.OPERATOR, "Erro de schema"),
    Error("ERROR304", Phase.WRITER, Action.FAIL, "Retry de writer esgotado"),
    Error("ERROR400", Phase.STORAGE, Action.RETRY, "Erro de S3/Storage"),
    Error("ERROR401", Phase.STORAGE, Action.OPERATOR, "Credenciais S3 inválidas"),
    Error("ERROR500", Phase.SYSTEM, Action.FAIL, "Erro interno"),
    Error("ERROR501", Phase.SYSTEM, Action.WAIT, "Nenhum proxy disponível"),
    Error("ERROR502", Phase.SYSTEM, Action.WAIT, "Worker indisponível"),
)
ERRORS: Final[Mapping[str, Error]] = {each.code: each for each in _ERRORS}

# When the budget of a phase is spent. Storage fails while a scrape is asked for, and counts there.
EXHAUSTED: Final[Mapping[Phase, str]] = {
    Phase.SESSION: "ERROR104",
    Phase.SCRAPE: "ERROR203",
    Phase.STORAGE: "ERROR203",
    Phase.WRITER: "ERROR304",
}


def budget(phase: Phase, max_retries: int) -> int:
    """How often a phase may be tried again: the document gives the writer one, and the others two."""
    return min(1, max_retries) if phase is Phase.WRITER else max_retries


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
    raise Permanent(f"invalid_remote_id: {value!r:.80}", code="ERROR200")


def data_url(storage_domain: str, job_id: str, scheme: str = "https") -> str:
    """Where a worker leaves what it found (§2.5.1)."""
    job = checked_remote_id(job_id)
    return SplitResult(scheme, storage_domain, f"/{job}/{job}_results.json", "", "").geturl()
