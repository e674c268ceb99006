"""The data types of the scrape worker: states, requests and results."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from retoma.engine.rules.errors import Action, Code, ErrorClass, table
from retoma.engine.rules.states import State

BATCH: Final = 150  # ads
ALL: Final = "all"
MOST_ADS: Final = 1_000_000


class SessionState(StrEnum):
    """The state of a session, as the API reports it."""

    INITIALIZING = "initializing"  # stored; nothing was sent yet
    CONNECTING = "connecting"  # connecting to the proxy
    AUTHENTICATING = "authenticating"  # checking the proxy's credentials
    WARMING_UP = "warming_up"  # reading the first page
    READY = "ready"
    SCRAPING = "scraping"  # ready, and a scrape is running
    STUCK = "stuck"  # no answer in time
    DISCONNECTED = "disconnected"  # the proxy or the site rejected us, or is gone
    TERMINATED = "terminated"  # ended by the caller, or never begun


# In these states nothing is sent through the proxy any more.
OVER: Final = frozenset(
    {SessionState.STUCK, SessionState.DISCONNECTED, SessionState.TERMINATED}
)


class ScrapeStatus(StrEnum):
    """The status of a scrape, as the API reports it."""

    PENDING = "pending"  # accepted, not started
    QUEUED = "queued"  # started, waiting for a retry
    RUNNING = "running"
    COMPLETED = "completed"
    EMPTY = "empty"  # completed without ads
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"  # waits for a person: see the worker's log


ENDS: Final = frozenset(
    {
        ScrapeStatus.COMPLETED,
        ScrapeStatus.EMPTY,
        ScrapeStatus.FAILED,
        ScrapeStatus.CANCELLED,
    }
)
# The status of each job state; DONE and WAITING depend on more than the state.
STATUS_OF: Final = {
    State.RUNNING: ScrapeStatus.RUNNING,
    State.PARKED: ScrapeStatus.PAUSED,
    State.SKIPPED: ScrapeStatus.FAILED,
    State.DEAD: ScrapeStatus.FAILED,
    State.CANCELED: ScrapeStatus.CANCELLED,
}

SESSION_OVER: Final = "session_over"
BLOCKED: Final = "blocked"
STORAGE: Final = "ERROR400"
STORAGE_KEY: Final = "ERROR401"
CODES: Final = table(
    Code(
        SESSION_OVER,
        ErrorClass.CANCELLED,
        Action.BURY,
        None,
        "The session of this scrape is over; nothing more may be sent through its proxy.",
    ),
    Code(BLOCKED, ErrorClass.BLOCKED, Action.BURY, None, "The site sent us away."),
    Code(
        STORAGE, ErrorClass.TRANSIENT, Action.RETRY, 3, "The storage did not take the results."
    ),
    Code(
        STORAGE_KEY, ErrorClass.CONFIG, Action.BURY, None, "The storage does not know our keys."
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters for the ads of a scrape."""

    start: str  # days, as 2025-01-31
    end: str
    format: Literal["all", "video", "image"] = "all"
    languages: tuple[str, ...] = ()  # empty: any

    @property
    def media_type(self) -> str:
        return "" if self.format == "all" else self.format


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeRequest:
    """The payload of a scrape job."""

    id: str
    session: str
    proxy: str
    filters: Filters
    most: int | None = None  # ads; None: all there are
    batch: int = BATCH
    key: str | None = None  # its Idempotency-Key
    digest: str = ""  # of the request body, to detect a reuse of the key with other parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeResult:
    """The result of a scrape."""

    ads_count: int
    url: str | None = None  # URL of the results, if not stored locally
