"""Ends are returned: Snooze, Skip, Park."""

from datetime import timedelta
from typing import Any

import pytest

from retoma.engine.rules.errors import BadInput
from retoma.engine.rules.outcome import Outcome, Park, Skip, Snooze
from retoma.engine.rules.states import ParkReason


@pytest.mark.parametrize("after", [90, 90.0, timedelta(minutes=1, seconds=30)])
def test_a_snooze_is_told_in_seconds_however_it_was_given(after):
    assert 90.0 == Snooze(after).after
    assert Snooze(90) == Snooze(after)


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), timedelta(seconds=-1), None])
def test_a_snooze_of_no_length_of_time_is_refused(after):
    with pytest.raises(BadInput, match="length of time"):
        Snooze(after)


@pytest.mark.parametrize("kind", [Skip, Park])
@pytest.mark.parametrize("reason", ["", "  ", None, 3])
def test_an_end_without_words_is_refused(kind, reason):
    with pytest.raises(BadInput, match="needs a reason"):
        kind(reason)


def test_a_parked_job_waits_for_an_operator_unless_told_otherwise():
    assert ParkReason.OPERATOR is Park("look at the invoice").kind
    assert ParkReason.BUDGET is Park("May is spent", ParkReason.BUDGET).kind


def test_a_park_for_an_unknown_kind_of_reason_is_refused():
    unknown: Any = "lunch"

    with pytest.raises(BadInput, match="operator, config, budget, unknown_remote, unstorable"):
        Park("back at one", unknown)


@pytest.mark.parametrize(
    ("outcome", "told"),
    [(Snooze(30), 30.0), (Skip("seen before"), "seen before"), (Park("look"), "look")],
)
def test_outcomes_can_be_matched_by_what_they_say(outcome: Outcome, told):
    match outcome:
        case Snooze(said) | Skip(said) | Park(said):
            assert told == said
