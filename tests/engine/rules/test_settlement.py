"""How a claim ends, as the row that settles it."""

import json

import pytest

from retoma.engine.rules import settlement
from retoma.engine.rules.events import LEADS_TO, EventType
from retoma.engine.rules.job import Held
from retoma.engine.rules.settlement import Settlement
from retoma.engine.rules.states import DeadReason, ParkReason, State
from retoma.engine.store import settle_row

ENDS = [
    settlement.done('{"a":1}'),
    settlement.skipped("seen before"),
    settlement.snoozed(30.0),
    settlement.parked("look", ParkReason.CONFIG, "config"),
    settlement.failed(1.5, "ERROR502", {"message": "503"}),
    settlement.buried(DeadReason.EXHAUSTED, "ERROR502", {"message": "503"}),
    settlement.CANCELED,
    settlement.RELEASED,
]


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.event)
def test_the_event_of_an_end_leads_to_its_state(end: Settlement):
    assert LEADS_TO[end.event] is end.state


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.event)
def test_an_end_travels_as_one_json_object_with_its_epoch(end: Settlement):
    row = json.loads(settle_row(Held(7, 3), end))

    assert (7, 3, end.event, end.state) == (
        row["job"],
        row["epoch"],
        row["event"],
        row["state"],
    )
    assert (json.loads(end.result) if end.result else None) == row.get("result")
    assert (json.loads(end.details) if end.details else None) == row.get("details")
    assert (end.after, end.reason, end.code) == (
        row.get("after"),
        row.get("reason"),
        row.get("code"),
    )


def test_a_failure_tells_its_code_its_wait_and_what_was_seen():
    end = settlement.failed(1.5, "ERROR502", {"message": "503", "stack": "line 1"})

    assert EventType.FAILED is end.event
    assert {
        "code": "ERROR502",
        "after": 1.5,
        "message": "503",
        "stack": "line 1",
    } == json.loads(end.details or "")


def test_a_burial_tells_why_in_its_row_and_in_its_timeline():
    end = settlement.buried(DeadReason.PERMANENT, "GONE", {"message": "no such product"})

    assert (State.DEAD, "permanent", "GONE") == (end.state, end.reason, end.code)
    assert "permanent" == json.loads(end.details or "")["reason"]
