"""Decide what a runner does next. Pure: no clock, no database.

A turn of the loop begins when the runner wakes. In one turn each action is taken at most once, in the order
of `next_action`; a turn ends with a wait, or with a claim after which more may be waiting.
"""

from dataclasses import dataclass
from enum import StrEnum


class Action(StrEnum):
    """What the loop does, in the order in which a turn asks for it."""

    LEAVE = "leave"  # the loop ends
    CHECK_MACHINE = "check_machine"  # whether a process on this machine came or died
    LOOK_AROUND = "look_around"  # one read of all that a tick asks
    READ_PAUSES = "read_pauses"
    START_TASKS = "start_tasks"  # leader tasks that are due
    STOP_CANCELED = "stop_canceled"
    CLAIM = "claim"
    CHECK_IDLE = "check_idle"  # whether nothing waits any more, and the loop may end
    WAIT = "wait"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopState:
    """What the decision depends on. Times are seconds of the runner's clock."""

    now: float = 0.0  # when this turn began
    ended: bool = False  # this runner instance leaves, or is lost
    next_check: float = 0.0  # of the machine
    next_tick: float = 0.0
    next_task: float = 0.0
    next_due: float = 0.0  # when a scheduled job becomes due
    pauses_changed: bool = False  # and were not read in this turn
    cancels: bool = False  # jobs that run here are to be canceled
    sweep: bool = False  # the next claim also takes back what the lost left
    free: int = 0  # slots
    more: bool = False  # more jobs wait than the last claim took
    notified: bool = False  # something may have changed since the last claim
    claimed: bool = False  # in this turn
    answered: bool = (
        False  # the database was asked for work in this turn, and not yet whether any is left
    )
    until_idle: bool = False


def next_action(state: LoopState) -> Action:
    """The first action of the turn that is still to be done."""
    if state.ended:
        return Action.LEAVE
    if state.now >= state.next_check:
        return Action.CHECK_MACHINE
    if state.now >= state.next_tick:
        return Action.LOOK_AROUND
    if state.pauses_changed:
        return Action.READ_PAUSES
    if state.now >= state.next_task:
        return Action.START_TASKS
    if state.cancels:
        return Action.STOP_CANCELED
    if _may_claim(state):
        return Action.CLAIM
    if state.until_idle and state.answered:
        return Action.CHECK_IDLE
    return Action.WAIT


def _may_claim(state: LoopState) -> bool:
    if state.claimed:
        return False
    work = state.more or state.notified or state.now >= state.next_due
    return state.sweep or (state.free > 0 and work)


def wait_until(state: LoopState) -> float:
    """When a wait ends if nothing wakes the runner before."""
    until = min(state.next_tick, state.next_check, state.next_task)
    # What is due has to wait for a slot: the one that gets free ends this wait.
    return min(until, state.next_due) if state.free > 0 else until


def wakes_on_free_slot(state: LoopState) -> bool:
    """Whether a slot that gets free ends the wait: only while a job waits for one."""
    return state.more or (state.free <= 0 and state.next_due <= wait_until(state))
