"""The states of a job, the moves between them, and who makes each move.

The rules live in states, errors, job, outcome, events and retry. They are pure: no I/O, no
asyncio, no clock, no database. Whatever they need to know is passed in.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class State(StrEnum):
    """Where a job stands. Scheduled, snoozed, stalled and the like are marks, not states."""

    WAITING = "waiting"
    RUNNING = "running"
    PARKED = "parked"
    DONE = "done"
    SKIPPED = "skipped"
    DEAD = "dead"
    CANCELED = "canceled"


class ParkReason(StrEnum):
    """What a parked job waits for."""

    OPERATOR = "operator"
    CONFIG = "config"
    BUDGET = "budget"
    UNKNOWN_REMOTE = "unknown_remote"
    UNSTORABLE = "unstorable"


class StepState(StrEnum):
    """How far a step is."""

    BEGUN = "begun"  # declared `once`: about to be done, and nobody knows more
    SAVED = "saved"  # done; of remote work: its handle is known
    FAILED = "failed"  # declared `once`, and known not to have happened
    ENDED = "ended"  # remote work that is over


class DeadReason(StrEnum):
    """Why a job ended badly."""

    PERMANENT = "permanent"
    EXHAUSTED = "exhausted"
    POISON = "poison"
    DEADLINE = "deadline"


MOVES: Final[Mapping[State, frozenset[State]]] = MappingProxyType(
    {
        State.WAITING: frozenset({State.RUNNING, State.PARKED, State.SKIPPED, State.CANCELED}),
        State.RUNNING: frozenset(
            {
                State.DONE,
                State.SKIPPED,
                State.DEAD,
                State.PARKED,
                State.CANCELED,
                State.WAITING,
            }
        ),
        State.PARKED: frozenset({State.WAITING, State.SKIPPED, State.CANCELED, State.DEAD}),
        State.DONE: frozenset({State.WAITING}),
        State.SKIPPED: frozenset({State.WAITING}),
        State.DEAD: frozenset({State.WAITING}),
        State.CANCELED: frozenset({State.WAITING}),
    }
)

# Left only by "again", which opens the next generation.
ENDED: Final = frozenset({State.DONE, State.SKIPPED, State.DEAD, State.CANCELED})

OWNERS: Final[Mapping[State, str]] = MappingProxyType(
    {
        State.WAITING: "A claim moves it next, or an operator.",
        State.RUNNING: "The runner that holds it moves it next, or the take-back, or a cancel.",
        State.PARKED: "An operator moves it next.",
        State.DONE: "Only again moves it, as the next generation.",
        State.SKIPPED: "Only again moves it, as the next generation.",
        State.DEAD: "Only again moves it, as the next generation. A discard only takes it off the list of dead letters.",
        State.CANCELED: "Only again moves it, as the next generation.",
    }
)


class BatchState(StrEnum):
    """How a batch stands: computed from its counts, never stored."""

    EMPTY = "empty"
    RUNNING = "running"
    PAUSED = "paused"
    PARKED = "parked"
    FINISHED = "finished"
    FINISHED_WITH_ERRORS = "finished_with_errors"


def batch_state(counts: Mapping[State, int], *, paused: bool) -> BatchState:
    """All that is open is parked: it waits for a person. Anything else that is open: it runs."""
    standing = {state for state, n in counts.items() if n}
    if not standing:
        return BatchState.EMPTY
    if standing <= ENDED:
        dead = State.DEAD in standing
        return BatchState.FINISHED_WITH_ERRORS if dead else BatchState.FINISHED
    if paused:
        return BatchState.PAUSED
    return BatchState.PARKED if standing - ENDED == {State.PARKED} else BatchState.RUNNING


def legal(frm: State, to: State) -> bool:
    return to in MOVES[frm]


def drawing() -> str:
    """The states as a mermaid diagram: every move an arrow, every owner a note."""
    lines = ["stateDiagram-v2", f"    [*] --> {State.WAITING}"]
    # In the order of State, not of a frozenset: the page must not change from run to run.
    lines += [f"    {frm} --> {to}" for frm in State for to in State if legal(frm, to)]
    lines += [f"    note right of {state}: {OWNERS[state]}" for state in State]
    return "\n".join(lines) + "\n"
