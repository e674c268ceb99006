"""A job as others see it, and as the runner that holds it does."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from retoma.engine.rules.states import ENDED, State, StepState

NEARLY_ALONE = 3  # jobs that a runner holds: a suspect among so few is judged by its third loss
MOST_LOSSES = (
    10  # without progress: a suspect beside any number of others is judged by this one
)
SUSPECT_AFTER = 2  # losses without progress: from then on it runs as the only suspect
RELEASES = 20  # a job given back more often than this in one generation is not going anywhere


class Held(NamedTuple):
    """The right to write on a job: this job, under this epoch. A stale one changes nothing."""

    job: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One row, as it was when it was read."""

    id: int
    kind: str
    version: int = 1
    queue: str = ""
    batch: int | None = None
    key: str | None = None
    generation: int = 1
    state: State
    reason: str | None = None
    code: str | None = None
    priority: int = 0
    run_at: datetime | None = None
    due: bool = True
    aside: str | None = None
    epoch: int = 0
    runner: str | None = None
    failures: int = 0
    lost: int = 0
    checkpoint: str | None = None
    progress: float | None = None
    note: str | None = None
    progress_at: datetime | None = None
    cancel_at: datetime | None = None
    correlation: str | None = None
    payload: str = "null"
    result: str | None = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    discarded_at: datetime | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def suspect(self) -> bool:
        return self.lost >= SUSPECT_AFTER and not self.ended


class Scope(StrEnum):
    """How long a thing of a pool is held."""

    ATTEMPT = "attempt"
    JOB = "job"  # over parking, snoozes and crashes, to the end of the generation
    RELEASE = "release"  # until somebody has seen its use end


@dataclass(frozen=True, slots=True)
class Item:
    """A thing of a pool that a job holds."""

    id: int
    pool: str
    name: str
    value: str
    scope: Scope


class Claim(NamedTuple):
    """What a runner gets when it claims a job. The order is that of claim_jobs.sql."""

    job: int
    epoch: int
    kind: str
    version: int
    batch: int | None
    generation: int
    fresh_from: int
    failures: int
    lost: int
    released: int
    checkpoint: str | None
    correlation: str | None
    time_left: float | None  # seconds to the job's deadline when it was claimed
    payload: str
    queue: str
    priority: int
    turn: int
    limit_key: str | None = None
    things: tuple[Item, ...] = ()  # of the pools its kind holds one of

    @property
    def held(self) -> Held:
        return Held(self.job, self.epoch)

    @property
    def tag(self) -> str:
        """Its kind, as claims ask for it."""
        return f"{self.kind}@{self.version}"

    @property
    def log_fields(self) -> dict[str, object]:
        """What every line about it says."""
        return {
            "job": self.job,
            "batch": self.batch,
            "kind": self.kind,
            "attempt": self.failures,
            "epoch": self.epoch,
            "correlation": self.correlation,
        }

    @property
    def suspect(self) -> bool:
        return self.lost >= SUSPECT_AFTER


REMOTE = "remote:"  # how the names of steps begin that stand for work on other machines
HANDLE = 8_192  # characters of a handle
LIVE = (StepState.BEGUN, StepState.SAVED)


class StepId(NamedTuple):
    """What makes a step itself. Change the meaning, change the name or the version."""

    name: str
    version: int = 1
    key: str = ""


class SavedStep(NamedTuple):
    """A step as it was found when its job was claimed."""

    id: StepId
    state: StepState
    value: str | None
    age: float = 0.0  # seconds since it got into this state
    spared: str | None = None  # what it cost, where it would have been paid again
    unread: int = 0  # characters of its value that were left in the database

    @property
    def saved(self) -> bool:
        return self.state is StepState.SAVED

    @property
    def live_elsewhere(self) -> bool:
        """Whether it stands for work that may still run on another machine."""
        return self.id.name.startswith(REMOTE) and self.state in LIVE


class Memory(NamedTuple):
    """What a claimed job has of its earlier claims."""

    steps: list[SavedStep]
    quiet: float  # seconds since it made progress
    canceling: bool  # somebody wants it canceled, and its remote work must be stopped first
    progress: float | None = None  # as it was last reported
    note: str | None = None
