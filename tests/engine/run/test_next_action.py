"""What a runner does next: a table of cases, and what holds for every state."""

from dataclasses import fields, replace
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma.engine.run.next_action import (
    Action,
    LoopState,
    next_action,
    wait_until,
    wakes_on_free_slot,
)

QUIET = LoopState(
    now=10.0, next_check=11.0, next_tick=15.0, next_task=inf, next_due=inf, free=50
)
TIMES = st.one_of(st.floats(0, 100), st.just(inf))
STATES = st.builds(
    LoopState,
    now=st.floats(0, 100),
    **dict.fromkeys(("next_check", "next_tick", "next_task", "next_due"), TIMES),
    free=st.integers(-5, 5),
    **{each.name: st.booleans() for each in fields(LoopState) if each.type is bool},
)
# What doing an action changes, at the least: no action is asked for again in its turn.
DONE: dict[Action, dict[str, Any]] = {
    Action.CHECK_MACHINE: {"next_check": inf},
    Action.LOOK_AROUND: {"next_tick": inf, "answered": True},
    Action.READ_PAUSES: {"pauses_changed": False},
    Action.START_TASKS: {"next_task": inf},
    Action.STOP_CANCELED: {"cancels": False},
    Action.CLAIM: {"claimed": True, "sweep": False, "answered": True},
    Action.CHECK_IDLE: {"answered": False},
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Action.WAIT),
        ({"ended": True, "more": True, "cancels": True}, Action.LEAVE),
        ({"next_check": 10.0, "next_tick": 10.0}, Action.CHECK_MACHINE),
        ({"next_tick": 10.0, "pauses_changed": True}, Action.LOOK_AROUND),
        ({"pauses_changed": True, "more": True}, Action.READ_PAUSES),
        ({"next_task": 9.0, "more": True}, Action.START_TASKS),
        ({"cancels": True, "more": True}, Action.STOP_CANCELED),
        ({"more": True}, Action.CLAIM),
        ({"notified": True}, Action.CLAIM),
        ({"next_due": 10.0}, Action.CLAIM),
        ({"more": True, "free": 0}, Action.WAIT),
        ({"next_due": 10.0, "free": -1}, Action.WAIT),
        ({"sweep": True, "free": 0}, Action.CLAIM),  # a sweep needs no slot
        ({"more": True, "claimed": True}, Action.WAIT),
        ({"sweep": True, "claimed": True}, Action.WAIT),
        ({"until_idle": True}, Action.WAIT),  # not asked: nobody knows whether work is left
        ({"until_idle": True, "answered": True}, Action.CHECK_IDLE),
        ({"until_idle": True, "answered": True, "more": True}, Action.CLAIM),
        ({"answered": True}, Action.WAIT),
    ],
)
def test_the_first_action_that_is_to_be_done(changes, expected):
    assert expected is next_action(replace(QUIET, **changes))


@pytest.mark.parametrize(
    ("changes", "until", "free_slot"),
    [
        ({}, 11.0, False),
        ({"next_task": 10.5}, 10.5, False),
        ({"next_due": 10.2}, 10.2, False),
        ({"next_due": 10.2, "free": 0}, 11.0, True),  # the slot that gets free ends the wait
        ({"next_due": 12.0, "free": 0}, 11.0, False),
        ({"more": True, "free": 0}, 11.0, True),
    ],
)
def test_how_long_it_waits_and_for_what(changes, until, free_slot):
    state = replace(QUIET, **changes)

    assert until == wait_until(state)
    assert free_slot is wakes_on_free_slot(state)


@given(STATES)
def test_a_turn_comes_to_its_end_and_does_each_action_once(state):
    done: list[Action] = []
    while (action := next_action(state)) not in (Action.WAIT, Action.LEAVE):
        done.append(action)
        state = replace(state, **DONE[action])

    assert len(done) == len(set(done))
    assert done == sorted(done, key=[*Action].index)


@given(STATES)
def test_nothing_is_claimed_by_one_that_leaves_and_nothing_without_a_slot_but_in_a_sweep(state):
    if next_action(state) is Action.CLAIM:
        assert not state.ended
        assert state.free > 0 or state.sweep


@given(STATES)
def test_whoever_waits_waits_for_nothing_that_is_there_already(state):
    if next_action(state) is Action.WAIT:
        assert wait_until(state) > state.now or state.claimed
        assert not state.cancels
        assert not state.pauses_changed
        assert state.claimed or state.free <= 0 or not (state.more or state.notified)


@given(STATES)
def test_an_ended_instance_only_leaves(state):
    assert Action.LEAVE is next_action(replace(state, ended=True))
