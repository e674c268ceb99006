"""Every move has its event, and every event its place in the table (E1, E9, E11)."""

from retoma.engine.rules.events import LEADS_TO, End, EventType
from retoma.engine.rules.states import MOVES, State, legal

# From where to where each event that is a move leads; None: the job was not there before.
TOLD: dict[str, tuple[set[State | None], State]] = {
    "submitted": ({None}, State.WAITING),
    "claimed": ({State.WAITING}, State.RUNNING),
    "done": ({State.RUNNING}, State.DONE),
    "skipped": ({State.WAITING, State.RUNNING, State.PARKED}, State.SKIPPED),
    "failed": ({State.RUNNING}, State.WAITING),
    "buried": ({State.RUNNING, State.PARKED}, State.DEAD),
    "lost": ({State.RUNNING}, State.WAITING),
    "released": ({State.RUNNING}, State.WAITING),
    "snoozed": ({State.RUNNING}, State.WAITING),
    "parked": ({State.WAITING, State.RUNNING}, State.PARKED),
    "unparked": ({State.PARKED}, State.WAITING),
    "canceled": ({State.WAITING, State.RUNNING, State.PARKED}, State.CANCELED),
    "again": ({State.DONE, State.SKIPPED, State.DEAD, State.CANCELED}, State.WAITING),
}


def test_every_event_says_where_it_leads():
    assert set(EventType) == set(LEADS_TO)


def test_e1_every_event_that_is_a_move_makes_a_legal_one():
    assert {event: to for event, to in LEADS_TO.items() if to} == {
        event: to for event, (_, to) in TOLD.items()
    }
    for starts, to in TOLD.values():
        assert all(frm is None or legal(frm, to) for frm in starts)


def test_e11_every_legal_move_has_an_event_that_tells_of_it():
    told = {(frm, to) for starts, to in TOLD.values() for frm in starts if frm is not None}

    assert {(frm, to) for frm, ends in MOVES.items() for to in ends} == told


def test_e9_a_claim_ends_in_one_of_eight_ways_each_told_by_an_event_of_its_name():
    assert "done skipped failed lost released snoozed parked canceled" == " ".join(End)
    for end in End:
        assert LEADS_TO[EventType(end)] in MOVES[State.RUNNING]
