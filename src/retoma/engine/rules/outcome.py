"""What a story may return instead of a value: not yet, not needed, not without a person.

Ends are returned, failures are raised (errors.py).
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from retoma.engine.rules.duration import seconds
from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.states import ParkReason
from retoma.words import say


@dataclass(frozen=True, slots=True, init=False)
class Snooze:
    """Not yet: the story is told again from the top after so long. Costs no attempt."""

    after: float  # seconds

    def __init__(self, after: float | timedelta) -> None:
        object.__setattr__(self, "after", seconds(after))


@dataclass(frozen=True, slots=True)
class Skip:
    """Not needed: the job ends well, without a result."""

    reason: str

    def __post_init__(self) -> None:
        _say_why("Skip", self.reason)


@dataclass(frozen=True, slots=True)
class Park:
    """Not without a person: the job waits, holding nothing, until somebody moves it."""

    reason: str
    kind: ParkReason = ParkReason.OPERATOR

    def __post_init__(self) -> None:
        _say_why("Park", self.reason)
        if not isinstance(self.kind, ParkReason):
            raise BadInput(
                say(
                    "Park: {kind!r} is not one of {known}",
                    kind=self.kind,
                    known=", ".join(ParkReason),
                )
            )


Outcome = Snooze | Skip | Park


@dataclass(frozen=True, slots=True)
class Aside:
    """Not while this gate is closed: the job holds nothing and spends nothing until it opens."""

    gate: str


class Unknown(StrEnum):
    """What follows where nobody knows whether a step that was begun has happened."""

    PARK = "park"
    REPEAT = "repeat"


@dataclass(frozen=True, slots=True)
class Happened:
    """What `reconcile` found: it did happen, and gave this."""

    value: Any = None


class Unwound(BaseException):
    """Leaves a story in the middle with an outcome; it is told again from the top another time.

    No Exception: a story that catches those must not catch this.
    """

    def __init__(self, outcome: "Outcome | Aside") -> None:
        super().__init__(outcome)
        self.outcome = outcome


def _say_why(name: str, reason: object) -> None:
    """The reason is all that the person who finds the job will have."""
    if not isinstance(reason, str) or not reason.strip():
        raise BadInput(
            say("{name} needs a reason in words, not {reason!r}", name=name, reason=reason)
        )
