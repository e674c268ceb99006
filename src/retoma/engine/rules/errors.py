"""What can go wrong, as a tree of exceptions and a table of codes.

RetomaError
├── Transient             raised by a story: may work next time
│   └── Throttled         we ask too often
├── Permanent             raised by a story: will never work
├── LeaseLost             this runner no longer holds the job
├── Unsure                a commit or a request was sent and its reply never came
└── Refused               bad input; nothing was changed
    ├── BadInput
    │   └── DuplicateStep a step asked for twice in one attempt
    ├── UnknownKind
    ├── IdempotencyMismatch
    ├── NotFound
    └── IllegalMove
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from retoma.words import say


class RetomaError(Exception):
    """The base of everything retoma raises on purpose."""


class Transient(RetomaError):
    """This try failed; the next may not. `retry_after` is the other side's wish, in seconds."""

    def __init__(
        self, message: str, *, code: str = "transient", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after
        self.slowed = False  # an adaptive rate has heard of it: no outage, everybody calls less


class Throttled(Transient):
    """The other side said: too often. The wait it asks for is its `retry_after`."""

    def __init__(
        self, message: str, *, code: str = "throttled", retry_after: float | None = None
    ) -> None:
        super().__init__(message, code=code, retry_after=retry_after)


class Permanent(RetomaError):
    """No number of tries will help; the job is buried at once."""

    def __init__(self, message: str, *, code: str = "permanent") -> None:
        super().__init__(message)
        self.code = code


class LeaseLost(RetomaError):
    """This runner's hold on the job is over; what it writes from now on changes nothing."""

    def __init__(self, job: object) -> None:
        super().__init__(job)
        self.job = job

    def __str__(self) -> str:
        return (
            f"job {self.job}: this runner no longer holds it; another may already be at work, "
            "and nothing written here from now on is kept"
        )


class Unsure(RetomaError):
    """The reply to a commit, or to a request, was lost: it may or may not have happened.

    Look before asking again, or ask under an idempotency key: then asking again is safe.
    """

    def __init__(self, message: str, *, code: str = "unsure") -> None:
        super().__init__(message)
        self.code = code


class Refused(RetomaError):
    """The request was refused and changed nothing."""


class BadInput(Refused):
    """A value that no rule allows."""


class DuplicateStep(BadInput):
    """One attempt asked for the same step twice; the second call would get the first one's value."""


class UnknownKind(Refused):
    """No job of this name is registered here."""


class IdempotencyMismatch(Refused):
    """The key is already taken by a submission with another payload."""


class NotFound(Refused):
    """There is no such thing, or no longer."""


class IllegalMove(Refused):
    """The thing exists, but from where it stands it cannot go there."""


class ErrorClass(StrEnum):
    """Whose trouble an error is: what a person would do about it."""

    TRANSIENT = "transient"
    THROTTLED = "throttled"
    BLOCKED = "blocked"
    CONFIG = "config"
    DATA = "data"
    BUG = "bug"
    CANCELLED = "cancelled"
    LOST = "lost"


class Action(StrEnum):
    """What the engine does when an attempt ends with a code."""

    RETRY = "retry"
    BURY = "bury"
    PARK = "park"


@dataclass(frozen=True, slots=True)
class Code:
    """One line of a table of codes; `budget` caps the failed attempts below the job's own cap."""

    code: str
    error_class: ErrorClass
    action: Action
    budget: int | None
    meaning: str

    def __post_init__(self) -> None:
        if self.budget is not None and self.budget < 1:
            raise BadInput(
                say(
                    "code {code}: a budget is at least 1, not {budget}",
                    code=self.code,
                    budget=self.budget,
                )
            )


def table(*codes: Code) -> Mapping[str, Code]:
    """Codes by their name, for an application's own list; a name given twice is refused."""
    named = {code.code: code for code in codes}
    if len(named) < len(codes):
        names = [code.code for code in codes]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise BadInput(say("codes given twice: {codes}", codes=", ".join(twice)))
    return MappingProxyType(named)


ENGINE_CODES: Final = table(
    Code(
        "exception",
        ErrorClass.BUG,
        Action.RETRY,
        None,
        "The story raised something it did not name; its stack is in the timeline.",
    ),
    Code(
        "transient",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "The story said: not this time, perhaps the next.",
    ),
    Code(
        "permanent",
        ErrorClass.DATA,
        Action.BURY,
        None,
        "The story said: no number of tries will help.",
    ),
    Code(
        "timeout",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "One attempt, or a call in it, took longer than it may; the next may be quicker.",
    ),
    Code(
        "throttled",
        ErrorClass.THROTTLED,
        Action.RETRY,
        None,
        "The other side said that we ask too often; the wait it asks for is kept.",
    ),
    Code(
        "no_answer",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "Nobody answered: no such name, no connection, or it broke off.",
    ),
    Code(
        "bad_answer",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "An answer came that cannot be read: broken, cut short, or not what was asked for.",
    ),
    Code(
        "too_large",
        ErrorClass.DATA,
        Action.BURY,
        None,
        "An answer is larger than this purpose may bring home, as sent or once unpacked.",
    ),
    Code(
        "ssrf_blocked",
        ErrorClass.BLOCKED,
        Action.BURY,
        None,
        "The address leads where this purpose may not go; nothing was sent there.",
    ),
    Code(
        "unsure",
        ErrorClass.LOST,
        Action.RETRY,
        None,
        "The reply to a request was lost; it may have happened. A step done once is looked after first.",
    ),
    Code(
        "stalled",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "The attempt lived but made no progress; its stack was kept and it was stopped.",
    ),
    # Transient, for nothing is wrong with the job; buried, for its time is over however it fares.
    Code(
        "deadline",
        ErrorClass.TRANSIENT,
        Action.BURY,
        None,
        "The job's own deadline passed, all attempts and waits included.",
    ),
    Code(
        "unstorable_result",
        ErrorClass.DATA,
        Action.PARK,
        None,
        "The work was done but its result cannot be stored; it is kept as evidence, and the job waits.",
    ),
    Code(
        "bad_payload",
        ErrorClass.DATA,
        Action.BURY,
        None,
        "The stored payload, or a saved step, does not fit what the code now expects.",
    ),
    Code(
        "bad_input",
        ErrorClass.BUG,
        Action.BURY,
        None,
        "The story asked the engine for what it never does; only other code will help.",
    ),
    Code(
        "duplicate_step",
        ErrorClass.BUG,
        Action.BURY,
        None,
        "One attempt asked for the same step twice; give each call a key=, or use ctx.each.",
    ),
    Code(
        "child_died",
        ErrorClass.BUG,
        Action.RETRY,
        None,
        "The child process of a step died (segfault, kill, exit); only this job pays.",
    ),
    Code(
        "out_of_memory",
        ErrorClass.BUG,
        Action.RETRY,
        None,
        "The child process of a step used up the memory it may have; only this job pays.",
    ),
    Code(
        "remote_failed",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "Remote work ended badly; the next attempt sends it again.",
    ),
    Code(
        "remote_gone",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "The other side has no such work, or no longer; the next attempt sends it again.",
    ),
    Code(
        "remote_stopped",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "Somebody stopped remote work on the other side; the next attempt sends it again.",
    ),
    Code(
        "remote_timeout",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "Remote work took longer than it may, was stopped and was seen to end.",
    ),
    Code(
        "remote_stalled",
        ErrorClass.TRANSIENT,
        Action.RETRY,
        None,
        "Remote work told of nothing new for too long, was stopped and was seen to end.",
    ),
    Code(
        "bad_handle",
        ErrorClass.DATA,
        Action.BURY,
        None,
        "The other side gave a handle that cannot be kept; its work waits for a person.",
    ),
    Code(
        "lease_lost",
        ErrorClass.LOST,
        Action.RETRY,
        None,
        "The runner lost its hold on the job; another goes on, no attempt of the job is spent.",
    ),
    Code(
        "poison",
        ErrorClass.LOST,
        Action.BURY,
        None,
        "Without progress its runner died a third time while it held three jobs at most, or a tenth time beside others.",
    ),
    Code(
        "released_too_often",
        ErrorClass.LOST,
        Action.BURY,
        None,
        "Runners that were shutting down gave the job back too many times in one generation.",
    ),
    Code(
        "canceled",
        ErrorClass.CANCELLED,
        Action.BURY,
        None,
        "A person asked for the end: the job is canceled, not dead, and never retried.",
    ),
    Code(
        "config",
        ErrorClass.CONFIG,
        Action.PARK,
        None,
        "A setting or a credential is wrong; the job waits for a person to put it right.",
    ),
    Code(
        "budget",
        ErrorClass.BLOCKED,
        Action.PARK,
        None,
        "The money or the quota set for this work is spent; the job waits for a person.",
    ),
    Code(
        "unknown_remote",
        ErrorClass.LOST,
        Action.PARK,
        None,
        "Nobody can tell whether the other side did the work; a person must look.",
    ),
)
