"""Lengths of time as people write them."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma.engine.duration import seconds
from retoma.engine.errors import BadInput


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (0, 0.0),
        (90, 90.0),
        (0.25, 0.25),
        (timedelta(minutes=5), 300.0),
        ("5m", 300.0),
        ("90s", 90.0),
        ("1h30m", 5_400.0),
        ("250ms", 0.25),
        ("1.5h", 5_400.0),
        ("2d", 172_800.0),
        ("1h30m15s500ms", 5_415.5),
        ("0s", 0.0),
    ],
)
def test_a_length_of_time_is_told_in_seconds(written, meant):
    assert meant == seconds(written)


@pytest.mark.parametrize(
    "nonsense",
    [
        *("", "5", "m", "-5m", "5 m", "5M", "30m1h", "5m5m", "1e3s", ".5s", "5min", "\u0665s"),
        *(-1, float("nan"), float("inf"), 10**400, timedelta(seconds=-1), "9" * 400 + "d"),
        *(True, None, [5], b"5m"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_length_of_time_is_refused_in_words(nonsense):
    with pytest.raises(BadInput, match="length of time"):
        seconds(nonsense)


@given(st.text())
def test_any_text_is_either_a_length_of_time_or_refused(text):
    with suppress(BadInput):
        assert seconds(text) >= 0


@given(st.integers(0, 99), st.integers(0, 59), st.integers(0, 59))
def test_hours_minutes_and_seconds_add_up(hours, minutes, rest):
    written = f"{hours}h{minutes}m{rest}s"

    assert hours * 3_600 + minutes * 60 + rest == seconds(written)
