"""Every move has its event, and every event its place in the table (E1, E9, E11)."""

from retoma.engine.events import LEADS_TO, End, EventType
from retoma.engine.states import MOVES, State, legal

# Where each event that is a move may come from; None: the job was not there before.
COMES_FROM: dict[str, set[State | None]] = {
    "submitted": {None},
    "claimed": {State.WAITING},
    "done": {State.RUNNING},
    "skipped": {State.RUNNING},
    "failed": {State.RUNNING},
    "buried": {State.RUNNING, State.PARKED},
    "lost": {State.RUNNING},
    "released": {State.RUNNING},
    "snoozed": {State.RUNNING},
    "parked": {State.WAITING, State.RUNNING},
    "unparked": {State.PARKED},
    "canceled": {State.WAITING, State.RUNNING, State.PARKED},
    "again": {State.DONE, State.SKIPPED, State.DEAD, State.CANCELED},
}


def test_every_event_says_where_it_leads():
    assert set(EventType) == set(LEADS_TO)


def test_e1_every_event_that_is_a_move_makes_a_legal_one():
    assert {event for event, to in LEADS_TO.items() if to} == set(COMES_FROM)
    for event, starts in COMES_FROM.items():
        to = LEADS_TO[EventType(event)]
        assert to is not None
        assert all(frm is None or legal(frm, to) for frm in starts)


def test_e11_every_legal_move_has_an_event_that_tells_of_it():
    told = {
        (frm, LEADS_TO[EventType(event)])
        for event, starts in COMES_FROM.items()
        for frm in starts
        if frm is not None
    }

    assert {(frm, to) for frm, ends in MOVES.items() for to in ends} == told


def test_e9_a_claim_ends_in_one_of_eight_ways_each_told_by_an_event_of_its_name():
    assert "done skipped failed lost released snoozed parked canceled" == " ".join(End)
    for end in End:
        assert LEADS_TO[EventType(end)] in MOVES[State.RUNNING]
