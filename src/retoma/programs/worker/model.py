"""The nouns of a scrape worker: its states, what is asked of it, what it brings home."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from retoma.engine.rules.errors import Action, Code, ErrorClass, table
from retoma.engine.rules.states import State

BATCH: Final = 150  # ads
ALL: Final = "all"
MOST_ADS: Final = 1_000_000


class SessionState(StrEnum):
    """Where the session stands, as whoever asks is told."""

    INITIALIZING = "initializing"  # written down; nothing was sent yet
    CONNECTING = "connecting"  # the proxy is dialled
    AUTHENTICATING = "authenticating"  # a request shows whether the proxy takes us
    WARMING_UP = "warming_up"  # the first page is read
    READY = "ready"
    SCRAPING = "scraping"  # ready, and a scrape is not over
    STUCK = "stuck"  # no answer in time
    DISCONNECTED = "disconnected"  # the proxy or the site sent us away, or is gone
    TERMINATED = "terminated"  # ended by whoever began it, or never begun


# Nothing more is sent through the proxy of a session that is over.
OVER: Final = frozenset(
    {SessionState.STUCK, SessionState.DISCONNECTED, SessionState.TERMINATED}
)


class ScrapeStatus(StrEnum):
    """Where a scrape stands, as whoever asks is told."""

    PENDING = "pending"  # taken on, not begun
    QUEUED = "queued"  # begun, and waiting for its next try
    RUNNING = "running"
    COMPLETED = "completed"
    EMPTY = "empty"  # well done, and nothing found
    FAILED = "failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"  # not without a person: see the worker's own log


ENDS: Final = frozenset(
    {
        ScrapeStatus.COMPLETED,
        ScrapeStatus.EMPTY,
        ScrapeStatus.FAILED,
        ScrapeStatus.CANCELLED,
    }
)
# What a state of the job means to whoever asks; DONE and WAITING depend on more.
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
    """Which ads are wanted."""

    start: str  # days, as 2025-01-31
    end: str
    format: Literal["all", "video", "image"] = "all"
    languages: tuple[str, ...] = ()  # none named: any

    @property
    def media_type(self) -> str:
        return "" if self.format == "all" else self.format


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A scrape, as it is kept with its job."""

    id: str
    session: str
    proxy: str
    filters: Filters
    most: int | None = None  # ads; None: all there are
    batch: int = BATCH
    key: str | None = None  # by which whoever asked may find it again
    digest: str = ""  # of what was asked, to tell it from something else under the same key


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a scrape came to."""

    ads_count: int
    url: str | None = None  # where the results lie, if not with us
