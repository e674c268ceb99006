"""What happens to a job, as the words of its audit log, and how a claim can end."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from retoma.engine.rules.states import State


class EventType(StrEnum):
    """One line of a job's timeline; written in the transaction of the move it tells of."""

    SUBMITTED = "submitted"
    CLAIMED = "claimed"
    STEP_BEGUN = "step_begun"
    STEP_SAVED = "step_saved"
    STEP_FAILED = "step_failed"
    STEP_ENDED = "step_ended"
    CANCEL_REQUESTED = "cancel_requested"
    STALLED = "stalled"
    EVIDENCE = "evidence"
    HELD = "held"
    FREED = "freed"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    BURIED = "buried"
    LOST = "lost"
    RELEASED = "released"
    SNOOZED = "snoozed"
    PARKED = "parked"
    UNPARKED = "unparked"
    CANCELED = "canceled"
    AGAIN = "again"
    DISCARDED = "discarded"


# None: it tells of something that is not a move.
LEADS_TO: Final[Mapping[EventType, State | None]] = MappingProxyType(
    {
        EventType.SUBMITTED: State.WAITING,
        EventType.CLAIMED: State.RUNNING,
        EventType.STEP_BEGUN: None,
        EventType.STEP_SAVED: None,
        EventType.STEP_FAILED: None,
        EventType.STEP_ENDED: None,
        EventType.CANCEL_REQUESTED: None,
        EventType.STALLED: None,
        EventType.EVIDENCE: None,
        EventType.HELD: None,
        EventType.FREED: None,
        EventType.DONE: State.DONE,
        EventType.SKIPPED: State.SKIPPED,
        EventType.FAILED: State.WAITING,
        EventType.BURIED: State.DEAD,
        EventType.LOST: State.WAITING,
        EventType.RELEASED: State.WAITING,
        EventType.SNOOZED: State.WAITING,
        EventType.PARKED: State.PARKED,
        EventType.UNPARKED: State.WAITING,
        EventType.CANCELED: State.CANCELED,
        EventType.AGAIN: State.WAITING,
        EventType.DISCARDED: None,
    }
)


class End(StrEnum):
    """How a claim ends: exactly one of these for each (E9)."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    LOST = "lost"
    RELEASED = "released"
    SNOOZED = "snoozed"
    PARKED = "parked"
    CANCELED = "canceled"
