"""The states of a job and the moves between them are one closed table (E1, E12)."""

from itertools import product

import pytest

from retoma.engine.rules.states import (
    ENDED,
    MOVES,
    OWNERS,
    BatchState,
    State,
    batch_state,
    drawing,
    legal,
)

# As docs/states.md has it; written out again so that a move is never added by a slip of the pen.
PUBLISHED = {
    "waiting": "running parked skipped canceled",
    "running": "done skipped dead parked canceled waiting",
    "parked": "waiting skipped canceled dead",
    "done": "waiting",
    "skipped": "waiting",
    "dead": "waiting",
    "canceled": "waiting",
}


@pytest.mark.parametrize(("frm", "to"), [*product(State, State)])
def test_e1_a_move_is_legal_exactly_when_it_is_published(frm, to):
    assert (to in PUBLISHED[frm].split()) == legal(frm, to)


def test_e1_every_state_has_its_moves_and_its_owner():
    assert set(State) == set(MOVES) == set(OWNERS)


def test_e12_an_ended_job_can_only_begin_again():
    assert {"done", "skipped", "dead", "canceled"} == ENDED
    for state in ENDED:
        assert {State.WAITING} == MOVES[state]


def test_e7_from_every_state_a_job_can_still_come_to_an_end():
    for state in set(State) - ENDED:
        assert reachable(state) & ENDED


def test_no_one_but_a_claim_leads_into_running():
    assert [State.WAITING] == [state for state in State if legal(state, State.RUNNING)]


def test_the_tables_cannot_be_changed():
    with pytest.raises(TypeError):
        MOVES[State.DONE] = frozenset(State)  # type: ignore[index]


@pytest.mark.parametrize(
    ("standing", "paused", "state"),
    [
        ("", False, BatchState.EMPTY),
        ("", True, BatchState.EMPTY),
        ("waiting", False, BatchState.RUNNING),
        ("waiting parked dead", False, BatchState.RUNNING),
        ("running parked", False, BatchState.RUNNING),
        ("running done", True, BatchState.PAUSED),
        ("parked done dead", False, BatchState.PARKED),
        ("parked done", True, BatchState.PAUSED),
        ("done skipped canceled", False, BatchState.FINISHED),
        ("canceled", True, BatchState.FINISHED),
        ("done dead", True, BatchState.FINISHED_WITH_ERRORS),
    ],
)
def test_how_a_batch_stands_follows_from_its_counts(standing, paused, state):
    counts = {State(name): 1 for name in standing.split()}

    assert state is batch_state(counts, paused=paused)
    assert state is batch_state({**dict.fromkeys(State, 0), **counts}, paused=paused)


def test_the_drawing_has_every_move_once_and_every_owner():
    lines = drawing().splitlines()

    arrows = [line.strip() for line in lines if "-->" in line]
    moves = [f"{frm} --> {to}" for frm, ends in MOVES.items() for to in ends]
    assert sorted(["[*] --> waiting", *moves]) == sorted(arrows)
    for state in State:
        assert f"    note right of {state}: {OWNERS[state]}" in lines
        assert not set(":;") & set(OWNERS[state])  # mermaid would end the note there


def reachable(start: State) -> set[State]:
    seen: set[State] = set()
    ahead = {start}
    while ahead:
        state = ahead.pop()
        seen.add(state)
        ahead |= MOVES[state] - seen
    return seen
