"""How things look on the wire: what a body may say, and what an answer says."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Header, Path, Query
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    model_validator,
)

from retoma.codec import decode
from retoma.engine.handlers.kinds import NAME_LENGTH, PRIORITIES
from retoma.engine.rules.gates import CAPS
from retoma.engine.rules.job import Job
from retoma.engine.rules.live_settings import Source
from retoma.engine.rules.reasons import REASON
from retoma.engine.rules.states import State
from retoma.engine.run.submission import KEY_LENGTH
from retoma.engine.run.submission import NAME_LENGTH as BATCH_NAME
from retoma.services.audit import AuditLine
from retoma.services.batches import BatchSeen
from retoma.services.bulk import Verb
from retoma.services.jobs import PAGE, Event, EvidenceSeen, Search
from retoma.services.pauses import Scope
from retoma.words import say

T = TypeVar("T")

LARGEST = 2**63 - 1  # ids are 64 bits in both databases
MARK = 4_000  # characters of a cursor: names are in it, in whatever script
TICKED = 1_000  # ids that may be named in one body
DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
STACKS = ("stack", "stacks", "traceback")  # what a viewer does not see of a failure


# — values —


def _instant(value: Any) -> Any:
    # Else a number would be read as seconds or milliseconds, whichever it looks like.
    if not isinstance(value, datetime) and not (isinstance(value, str) and DAY.match(value)):
        raise ValueError(say("is not an instant such as 2026-01-31T12:00:00Z"))
    return value


def _zoned(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError(say("needs a time zone"))
    try:
        return value.astimezone(UTC)
    except OverflowError:  # of the first or the last day there is, in a zone too far away
        raise ValueError(say("is not an instant such as 2026-01-31T12:00:00Z")) from None


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError(say("has characters that cannot be seen"))
    return value


def _day(value: Any) -> Any:
    if not isinstance(value, date) and not (isinstance(value, str) and DAY.match(value)):
        raise ValueError(say("is not a day such as 2026-01-31"))
    return value


Scalar = StrictBool | StrictInt | StrictFloat | StrictStr | None
Id = Annotated[StrictInt, Field(ge=1, le=LARGEST)]
Day = Annotated[date, BeforeValidator(_day)]
Instant = Annotated[datetime, BeforeValidator(_instant), AfterValidator(_zoned)]
Why = Annotated[
    StrictStr, Field(min_length=1, max_length=REASON, examples=["known and settled"])
]
Name = Annotated[StrictStr, Field(min_length=1, max_length=200), AfterValidator(_printable)]
KindName = Annotated[
    StrictStr, Field(min_length=1, max_length=NAME_LENGTH), AfterValidator(_printable)
]
CodeName = Annotated[StrictStr, Field(min_length=1, max_length=100)]
Length = Annotated[
    StrictStr | Annotated[StrictInt, Field(ge=0)],
    Field(
        description="A length of time: seconds, or text such as `90s` and `2h`.",
        examples=["2h"],
    ),
]

# — parameters —

JobId = Annotated[int, Path(ge=1, le=LARGEST, description="The id of a job.", examples=[1])]
BatchId = Annotated[int, Path(ge=1, le=LARGEST, description="The id of a batch.", examples=[1])]
Sha256 = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="Of the bytes.")]
Limit = Annotated[int, Query(ge=1, le=PAGE, description="How many at most.")]
NextPage = Annotated[
    str | None,
    Query(max_length=MARK, description="`next` of the page before; nothing: the first page."),
]
ONCE = "Idempotency-Key"
OnceKey = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
ONCE_SAYS = "The same key and the same body are answered as the first time, with 200."
ONCE_EXAMPLE = "2f1c7a52-order-17"
Once = Annotated[
    OnceKey | None, Header(alias=ONCE, description=ONCE_SAYS, examples=[ONCE_EXAMPLE])
]
# As it stands in the reference where no route reads it.
ONCE_DOCUMENTED: dict[str, Any] = {
    "name": ONCE,
    "in": "header",
    "required": False,
    "schema": TypeAdapter(OnceKey).json_schema(),
    "description": "The same key and the same body are answered as the first time.",
    "example": ONCE_EXAMPLE,
}


class Body(BaseModel):
    """What somebody says. A field nobody knows is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Shown(BaseModel):
    """What we say."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class PageOf(Shown, Generic[T]):
    """A page of a list, and the cursor of the next; null: this was the last."""

    items: list[T]
    next: str | None = None


class Problem(Shown):
    """Why it was not done (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["about:blank"])
    title: str
    status: int
    code: str = Field(description="For programs: it never changes, whatever the language.")
    detail: str = Field(description="For people, in the language of Accept-Language.")
    trace_id: str = Field(description="By which the log knows this request.")
    errors: list[dict[str, str]] | None = Field(
        default=None, description="Each value that is not allowed: its path and why."
    )


# — jobs —


class JobLine(Shown):
    """A job in a list: without what it was given and gave."""

    id: int
    kind: str
    version: int
    state: State
    reason: str | None
    code: str | None
    batch: int | None
    key: str | None
    generation: int
    priority: int
    run_at: datetime | None
    due: bool
    aside: str | None
    epoch: int
    runner: str | None
    failures: int
    lost: int
    checkpoint: str | None
    progress: float | None
    note: str | None
    progress_at: datetime | None
    cancel_at: datetime | None
    correlation: str | None
    created_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    discarded_at: datetime | None
    suspect: bool


class JobShown(JobLine):
    """A job with its payload and its result."""

    payload: JsonValue
    result: JsonValue


def job_line(job: Job) -> JobLine:
    return JobLine.model_validate(job)


def job_shown(job: Job) -> JobShown:
    line = JobLine.model_validate(job).model_dump()
    result = None if job.result is None else decode(job.result)
    return JobShown(**line, payload=decode(job.payload), result=result)


class NewJob(Body):
    """A job to be submitted."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"kind": "quote", "payload": {"product": "lamp"}}]}
    )

    kind: KindName
    payload: JsonValue = None
    key: Annotated[StrictStr, Field(min_length=1, max_length=KEY_LENGTH)] | None = None
    priority: Annotated[StrictInt, Field(ge=PRIORITIES[0], le=PRIORITIES[-1])] | None = None
    run_at: Instant | None = None
    deadline: Length | None = None


class NewBatch(Body):
    """Jobs to be submitted together, all or none."""

    kind: KindName
    payloads: Annotated[list[JsonValue], Field(min_length=1, max_length=TICKED)]
    name: Annotated[StrictStr, Field(min_length=1, max_length=BATCH_NAME)] | None = None
    priority: Annotated[StrictInt, Field(ge=PRIORITIES[0], le=PRIORITIES[-1])] | None = None
    run_at: Instant | None = None
    deadline: Length | None = None


class Retry(Body):
    """How an ended job is tried again."""

    fresh: StrictBool = Field(default=False, description="Run every step again.")
    confirm: StrictBool = Field(
        default=False, description="Also one that ended well, or that somebody ended."
    )


class Reason(Body):
    """Why somebody does it; it is shown and kept."""

    why: Why


class MaybeReason(Body):
    """Why somebody does it, if they say."""

    why: Why | None = None


class Resolve(Body):
    """What became of work that nobody has seen end."""

    outcome: Annotated[
        StrictStr,
        Field(
            pattern="^(gone|adopt)$",
            description="`gone`: it is done again. `adopt`: this is what it was, or gave.",
            examples=["gone"],
        ),
    ]
    handle: JsonValue = Field(
        default=None, description="With `adopt`: the handle, or the value."
    )

    @model_validator(mode="after")
    def _agrees(self) -> "Resolve":
        if (self.outcome == "adopt") != (self.handle is not None):
            raise ValueError(say("a handle goes with adopt, and adopt with a handle"))
        return self


class Canceled(Shown):
    """What became of a cancel."""

    job: int
    state: State
    answer: str = Field(
        description="`canceled`: it never runs again. `cancel_requested`: its runner ends it.",
        examples=["canceled"],
    )


class EventShown(Shown):
    """One line of a job's timeline."""

    seq: int
    epoch: int | None
    type: str
    at: datetime
    actor: str | None
    details: JsonValue


def shown_details(details: Any, *, stacks: bool) -> Any:
    """A viewer sees what happened, not the inside of our programs."""
    if stacks or not isinstance(details, dict):
        return details
    return {name: value for name, value in details.items() if name not in STACKS}


def event_shown(event: Event, *, stacks: bool) -> EventShown:
    return EventShown(
        seq=event.seq,
        epoch=event.epoch,
        type=event.type,
        at=event.at,
        actor=event.actor,
        details=shown_details(event.details, stacks=stacks),
    )


class StepShown(Shown):
    """One step of a job, as it is kept."""

    name: str
    version: int
    key: str
    state: str
    generation: int
    epoch: int
    saved_at: datetime | None
    value: JsonValue


# — many at once —


class Where(Body):
    """Which jobs; what is not said may be anything."""

    state: State | None = None
    kind: KindName | None = None
    batch: Id | None = None
    code: CodeName | None = None
    checkpoint: Annotated[StrictStr, Field(min_length=1, max_length=200)] | None = None
    text: Annotated[StrictStr, Field(min_length=1, max_length=200)] | None = None

    def search(self) -> Search:
        return Search(**self.model_dump())


class WhereDead(Body):
    """Which dead letters; what is not said may be anything."""

    kind: KindName | None = None
    batch: Id | None = None
    code: CodeName | None = None
    fingerprint: Annotated[StrictStr, Field(pattern="^[0-9a-f]{12}$")] | None = None
    text: Annotated[StrictStr, Field(min_length=1, max_length=200)] | None = None

    def search(self) -> Search:
        return Search(letters=True, **self.model_dump())


Ids = Annotated[list[Id], Field(min_length=1, max_length=TICKED)]


class _Many(Body):
    ids: Ids | None = Field(default=None, description="These.", examples=[[1, 2]])
    dry_run: StrictBool = Field(default=False, description="Only say how many it would meet.")

    def _one_way(self, where: object) -> None:
        if (self.ids is None) == (where is None):
            raise ValueError(say("say which: ids, or where, and not both"))


class ManyJobs(_Many):
    """Something to be done to many jobs."""

    verb: Annotated[
        StrictStr, Field(pattern="^(retry|cancel|resume|skip)$", examples=["retry"])
    ]
    where: Where | None = Field(default=None, description="All that are so.")
    why: Why | None = None

    @model_validator(mode="after")
    def _agrees(self) -> "ManyJobs":
        self._one_way(self.where)
        if (self.verb == Verb.SKIP) != (self.why is not None):
            raise ValueError(say("whoever skips says why, and nobody else"))
        return self


class ManyRetries(_Many):
    """Dead letters to be tried again."""

    where: WhereDead | None = Field(default=None, description="All that are so.")
    canary: Annotated[StrictInt, Field(ge=1, le=TICKED)] | None = Field(
        default=None, description="Only so many of them, the newest: to see whether it works."
    )

    @model_validator(mode="after")
    def _agrees(self) -> "ManyRetries":
        self._one_way(self.where)
        return self


class ManyDiscards(_Many):
    """Dead letters to be put away."""

    where: WhereDead | None = Field(default=None, description="All that are so.")
    why: Why | None = None

    @model_validator(mode="after")
    def _agrees(self) -> "ManyDiscards":
        self._one_way(self.where)
        return self


class LeftShown(Shown):
    """A job that was not moved, and where it stands; null: it is not there, or moved meanwhile."""

    job: int
    state: State | None


class Done(Shown):
    """What was done, or would be; or which job does it."""

    dry_run: bool
    matching: int
    exact: bool = Field(description="False: at least so many.")
    moved: int = 0
    left: list[LeftShown] = Field(default=[], description="Of those that were named by id.")
    job: int | None = Field(
        default=None, description="The job that does it, where they are many."
    )


class Moved(Shown):
    """How many jobs it moved; or which job does it."""

    batch: int
    moved: int
    job: int | None = None


# — batches —


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDetails(BatchSeen):
    """A batch, and by which codes its jobs died."""

    codes: dict[str, int]


class BatchMade(Shown):
    """A batch just submitted."""

    id: int
    name: str
    kind: str
    submitted: int


class Codes(Body):
    """Which failures; none said: all."""

    codes: Annotated[list[CodeName], Field(min_length=1, max_length=100)] | None = Field(
        default=None, examples=[["ERROR202"]]
    )


class SkipInBatch(Body):
    """What to skip: one job, or those that failed with these codes."""

    why: Why
    job: Id | None = None
    codes: Annotated[list[CodeName], Field(min_length=1, max_length=100)] | None = None

    @model_validator(mode="after")
    def _agrees(self) -> "SkipInBatch":
        if (self.job is None) == (self.codes is None):
            raise ValueError(say("say which: a job, or codes, and not both"))
        return self


class Paused(Shown):
    """Whether it is paused now, and whether it was this call that changed it."""

    paused: bool
    changed: bool


# — dead letters —


class DeadLine(JobLine):
    """A dead letter in a list."""

    message: str
    fingerprint: str


class DeadLetter(JobShown):
    """A dead letter: why, what was seen, what to do."""

    why: str
    message: str
    fingerprint: str
    error: JsonValue
    evidence: list[EvidenceSeen]


class GroupShown(Shown):
    """Dead letters that died of the same."""

    code: str | None
    fingerprint: str
    message: str = Field(description="With # for every number, id, address and quoted text.")
    jobs: int
    kinds: list[str]
    newest: int
    oldest: int
    ended_at: datetime | None = Field(description="Of the newest.")


class GroupsShown(Shown):
    """Of what the newest dead letters died."""

    groups: list[GroupShown]
    looked_at: int
    all: bool = Field(description="False: older ones were not looked at.")


# — the rest of the house —


class RunnerShown(Shown):
    """A runner, as it tells of itself."""

    boot: str
    name: str
    state: str
    living: bool
    beat_at: datetime
    lease_until: datetime
    version: str = Field(
        description="Of retoma, and of the application where it says one.",
        examples=["0.1.0, app 7"],
    )
    slots: int
    held: int
    knows: list[str]
    trouble: str | None
    drain_at: datetime | None = Field(description="Since when somebody wants it to leave.")


class DrainShown(Shown):
    """A runner that was asked to leave."""

    boot: str
    name: str
    state: str = Field(
        description="`alive` until it has heard of it, then `leaving`.", examples=["alive"]
    )


class PoolShown(Shown):
    """A pool and how full it is."""

    name: str
    things: int
    on: int
    held: int


class ThingShown(Shown):
    """A thing of a pool: how it fares. Not what it is, which may be secret."""

    name: str
    vendor: str
    state: str
    reason: str | None
    uses: int
    failures: int
    score: float
    ready_at: datetime | None
    used_at: datetime | None
    job: int | None
    scope: str | None


class Switch(Body):
    """Things of a pool to be switched on or off, all of them or none."""

    things: Annotated[list[Name], Field(min_length=1, max_length=TICKED)]
    on: StrictBool
    why: Why


class Thing(Body):
    """One thing of a pool."""

    thing: Name


class SettingShown(Shown):
    """A setting or a knob, as it stands for this server."""

    name: str = Field(examples=["keep_done"])
    variable: str | None = Field(description="By which the environment of a process says it.")
    value: Scalar = Field(description="What is secret in it is `***`.")
    default: Scalar
    source: Source
    live: bool = Field(description="Whether it changes while processes run; else at a start.")
    changes: bool = Field(description="Whether it may be changed here, now.")
    rule: str | None = Field(description="What it may be, where it is live.")
    unit: str
    about: str
    changed_at: datetime | None
    changed_by: str | None


class NewValue(Body):
    """What a knob is from now on."""

    value: Scalar = Field(examples=["30d", 20])


class NewRate(Body):
    """How often something may be called from now on."""

    key: Name
    per_second: Annotated[float, Field(strict=True, gt=0, lt=1e9, allow_inf_nan=False)]
    burst: Annotated[float, Field(strict=True, ge=1, lt=1e9, allow_inf_nan=False)] | None = None


class NewLimit(Body):
    """How many may run under one key from now on; null: as the code says."""

    key: Name
    cap: Annotated[StrictInt, Field(ge=CAPS[0], le=CAPS[-1])] | None


class NewPause(Body):
    """What rests from now on: an application, a kind or a queue; and why, if somebody says."""

    scope: Scope
    name: Name
    why: Why | None = None


class PauseShown(Shown):
    """What is paused."""

    scope: Scope
    name: str
    since: datetime
    actor: str = Field(description="Who paused it.")
    why: str | None


class PassShown(Shown):
    """What one pass of retention deleted."""

    at: datetime
    retired: dict[str, int]


class DiskShown(Shown):
    """What takes how much room, in bytes; null: nobody here can tell."""

    database: int
    free: int = Field(
        description="Of these: nothing is in them, and what comes next goes there."
    )
    tables: dict[str, int] = Field(description="The largest; none where one file has them all.")
    file: str | None
    wal: int | None = Field(description="Written, and not yet put in its place in the file.")
    left: int | None = Field(description="Free on the disk of the file.")
    evidence: int
    pieces: int = Field(description="Of evidence.")
    at_least: bool = Field(description="There is more evidence than was added up.")
    shelf: str = Field(description="Where evidence lies: database, folder or s3.")
    shelf_left: int | None = Field(description="Free on the disk of that folder.")
    keep: dict[str, float | None] = Field(
        description="Seconds that things stay; null: for ever."
    )
    last_pass: PassShown | None = Field(description="Of retention.")


class BreakerShown(Shown):
    """One breaker as it stands."""

    name: str
    state: str
    failures: int
    threshold: int
    rest: float
    reason: str | None
    since: datetime | None
    probe_at: datetime | None


class AuditShown(Shown):
    """One thing that somebody did."""

    at: datetime
    actor: str | None
    verb: str
    subject: str
    job: int | None
    details: JsonValue


def audit_shown(line: AuditLine) -> AuditShown:
    return AuditShown(
        at=line.at,
        actor=line.actor,
        verb=line.verb,
        subject=line.subject,
        job=line.job,
        details=line.details,
    )


class Health(Shown):
    """Whether it is well."""

    status: str = Field(examples=["ok"])
    database: str | None = None


# — people —


class Me(Shown):
    """Who is asking."""

    name: str
    role: str
    csrf: str | None = Field(
        description="With a cookie: what a post must bring as X-CSRF-Token."
    )


RoleName = Annotated[
    StrictStr, Field(pattern="^(viewer|operator|admin)$", examples=["operator"])
]


class NewKeyAsked(Body):
    """A key for a person, who is written down if nobody is called so."""

    person: Name
    role: RoleName
    label: Annotated[StrictStr, Field(max_length=200), AfterValidator(_printable)] = ""
    expires: Length | None = Field(default=None, description="How long it is good.")


class Rotation(Body):
    """How long the old key is good beside the new one."""

    overlap: Length = "1d"


class NewKeyShown(Shown):
    """A key just made. Its token is shown this once, and is nowhere else."""

    id: str
    token: str | None = Field(description="Null where it was shown before.")


class Invitation(Body):
    """Somebody to be let in with a browser."""

    person: Name
    role: RoleName


class InvitationShown(Shown):
    """A link that signs its reader in, once. It is shown this once."""

    person: str
    link: str | None = Field(description="Null where it was shown before.")
