"""How a claim ends, as the row that settles it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from retoma.codec import encode
from retoma.engine.rules.events import EventType
from retoma.engine.rules.states import DeadReason, ParkReason, State

NO_CAUSE: Final[Mapping[str, object]] = MappingProxyType({})


class Settlement(NamedTuple):
    """One end of one claim. `result` and `details` are JSON text already."""

    event: EventType
    state: State
    result: str | None = None
    reason: str | None = None
    code: str | None = None
    after: float | None = None
    details: str | None = None
    aside: str | None = None
    stopping: bool = False  # waits on although somebody wants it canceled: to stop remote work


CANCELED = Settlement(EventType.CANCELED, State.CANCELED)
RELEASED = Settlement(EventType.RELEASED, State.WAITING)


def done(result: str) -> Settlement:
    return Settlement(EventType.DONE, State.DONE, result)


def skipped(why: str) -> Settlement:
    return Settlement(EventType.SKIPPED, State.SKIPPED, details=encode({"why": why}))


def snoozed(after: float, cause: Mapping[str, object] = NO_CAUSE) -> Settlement:
    """`cause`: the failed call that the job waits for, where it is one."""
    told = encode({"after": after, **cause})
    return Settlement(EventType.SNOOZED, State.WAITING, after=after, details=told)


def set_aside(gate: str, cause: Mapping[str, object] = NO_CAUSE) -> Settlement:
    told = encode({"after": 0, "aside": gate, **cause})
    return Settlement(EventType.SNOOZED, State.WAITING, aside=gate, details=told)


def parked(why: str, reason: ParkReason, code: str | None = None) -> Settlement:
    details = encode({"reason": reason, "why": why})
    return Settlement(EventType.PARKED, State.PARKED, reason=reason, code=code, details=details)


def failed(after: float, code: str, details: dict[str, object]) -> Settlement:
    told = encode({"code": code, "after": after, **details})
    return Settlement(EventType.FAILED, State.WAITING, code=code, after=after, details=told)


def buried(reason: DeadReason, code: str, details: dict[str, object]) -> Settlement:
    told = encode({"reason": reason, "code": code, **details})
    return Settlement(EventType.BURIED, State.DEAD, reason=reason, code=code, details=told)
